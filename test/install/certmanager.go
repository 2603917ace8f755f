// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const certManager = "cert-manager"

const tokenSeconds = 3600

func (s *story) installCertManager(ctx context.Context) error {
	rendered, err := s.helmCommand(ctx, "template", certManager, filepath.Join(s.certmanager, "deploy/charts/cert-manager"),
		"--namespace", certManager, "--set", "crds.enabled=true", "--set", "startupapicheck.enabled=false",
		"--set", "global.leaderElection.namespace="+certManager)
	if err != nil {
		return err
	}
	if err := s.apply(ctx, "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+certManager+"}\n---\n"+rendered, nil, func(kind string) bool {
		return slices.Contains([]string{"Namespace", "CustomResourceDefinition", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}, kind)
	}); err != nil {
		return err
	}
	args := make([]string, 2)
	for i, account := range []string{"cert-manager", "cert-manager-cainjector"} {
		if args[i], err = s.kubeconfig(ctx, certManager, account); err != nil {
			return err
		}
	}
	return s.pods.Launch("certmanager", filepath.Join(s.binaries, "certmanager"), args...)
}

func (s *story) kubeconfig(ctx context.Context, namespace, account string) (string, error) {
	token, err := s.client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(tokenSeconds))}}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("token of %s: %w", account, err)
	}
	admin := s.cluster.RESTConfig()
	config := clientcmdapi.NewConfig()
	config.Clusters[account] = &clientcmdapi.Cluster{Server: admin.Host, CertificateAuthorityData: admin.CAData, CertificateAuthority: admin.CAFile}
	config.AuthInfos[account] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	config.Contexts[account] = &clientcmdapi.Context{Cluster: account, AuthInfo: account}
	config.CurrentContext = account
	path := filepath.Join(s.dir, account+".kubeconfig")
	return path, clientcmd.WriteToFile(*config, path)
}

func (s *story) apply(ctx context.Context, documents string, dryRun []string, chosen func(kind string) bool) error {
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(s.client.Discovery()))
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(documents)), 4096)
	for {
		var o unstructured.Unstructured
		if err := decoder.Decode(&o.Object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("rendered documents: %w", err)
		}
		if len(o.Object) == 0 || !chosen(o.GetKind()) {
			continue
		}
		if err := until(ctx, "apply "+o.GetKind()+" "+o.GetName(), func(ctx context.Context) error { return s.applyOne(ctx, mapper, &o, dryRun) }); err != nil {
			return err
		}
	}
}

func (s *story) applyOne(ctx context.Context, mapper *restmapper.DeferredDiscoveryRESTMapper, o *unstructured.Unstructured, dryRun []string) error {
	mapping, err := mapper.RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version)
	if meta.IsNoMatchError(err) {
		mapper.Reset()
	}
	if err != nil {
		return err
	}
	var target dynamic.ResourceInterface = s.dynamic.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		target = s.dynamic.Resource(mapping.Resource).Namespace(o.GetNamespace())
	}
	_, err = target.Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: "install-test", Force: true, DryRun: dryRun})
	return err
}
