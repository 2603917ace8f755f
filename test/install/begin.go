// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/audit"
	"github.com/moorage-dev/moorage/test/sandbox/pods"
)

func components() []string {
	return []string{"moorage-controller", "moorage-scheduler", "moorage-webhook"}
}

func (s *story) begin(ctx context.Context) error {
	if err := s.publish(ctx); err != nil {
		return err
	}
	if err := s.startCluster(ctx, sandbox.Standalone, s.builtBinary, s.installOlder); err != nil {
		return err
	}
	return s.awaitMoorage(ctx)
}

func (s *story) startCluster(ctx context.Context, mode sandbox.Mode, binary func(image string) (string, error), install func(context.Context) error) error {
	options := s.options
	options.Shape = s.scenarios[0].In(mode)
	options.ServiceProxy = filepath.Join(s.dir, "services.sock")
	options.Bring = func(ctx context.Context, cluster *sandbox.Cluster) error {
		s.cluster, s.client, s.dynamic = cluster, cluster.Client(), cluster.Dynamic()
		s.audit = audit.Begin(cluster.AuditLog())
		if err := s.runPods(ctx, binary); err != nil {
			return err
		}
		if err := s.installCertManager(ctx); err != nil {
			return err
		}
		return install(ctx)
	}
	s.options = options
	cluster, err := sandbox.Start(ctx, options)
	if err != nil {
		return err
	}
	s.runner = &sandbox.Runner{Options: options, Seed: 1, Log: func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "        "+format+"\n", args...)
	}}
	s.runner.Adopt(cluster)
	return nil
}

func (s *story) installOlder(ctx context.Context) error {
	if err := s.installChart(ctx, olderChart, "--set", "mode=Standalone,image.registry="+registry); err != nil {
		return err
	}
	for _, policy := range []string{"moorage-volume-status", "moorage-records"} {
		if err := s.client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Delete(ctx, policy, metav1.DeleteOptions{}); err != nil {
			return err
		}
	}
	name := metav1.ObjectMeta{Name: olderGrants}
	_, err := s.client.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: name,
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"volumetickets/status"}, Verbs: []string{"update"}}}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	_, err = s.client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: name,
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: olderGrants},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: v1alpha1.SchedulerName}}}, metav1.CreateOptions{})
	return err
}

const olderGrants = "older-scheduler-grants-tickets"

func (s *story) endOlderGrants(ctx context.Context) error {
	return errors.Join(s.client.RbacV1().ClusterRoleBindings().Delete(ctx, olderGrants, metav1.DeleteOptions{}),
		s.client.RbacV1().ClusterRoles().Delete(ctx, olderGrants, metav1.DeleteOptions{}))
}

// olderChart is the chart of commit e9c19f87, as helm package makes it. It forbids what this tree's
// scheduler does: to write a pod's status with the Binding, and to grant tickets. installOlder removes the
// policies' bindings and adds the right.
const olderChart = "test/install/testdata/moorage-e9c19f87.tgz"

func (s *story) installChart(ctx context.Context, chart string, args ...string) error {
	_, err := s.helmCommand(ctx, append([]string{"install", release, chart, "--namespace", namespace, "--create-namespace"}, args...)...)
	return err
}

func roles() []string { return []string{"controller", "scheduler", "webhook"} }

func (s *story) roleOf(role string) (string, error) {
	file := filepath.Join(s.dir, "moorage-"+role)
	script := fmt.Sprintf("#!/bin/sh\nexec '%s' %s \"$@\"\n", filepath.Join(s.binaries, "moorage"), role)
	return file, os.WriteFile(file, []byte(script), 0o700)
}

func (s *story) runPods(ctx context.Context, binary func(image string) (string, error)) error {
	nodes := filepath.Join(s.cluster.Dir(), "nodes")
	runtime, err := pods.New(pods.Config{
		Namespace: namespace, Client: s.client, APIServer: s.cluster.RESTConfig().Host,
		NodeDir: func(node string) string { return filepath.Join(nodes, node) },
		Dir:     s.dir,
		Binary:  binary,
	})
	if err != nil {
		return err
	}
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = runtime.Run(life) // it can't fail
	}()
	s.later(func() { stop(); <-ended })
	stopProxy, err := runtime.ServeServices(s.options.ServiceProxy)
	if err != nil {
		return err
	}
	s.later(stopProxy)
	s.pods.Runtime = runtime
	close(s.pods.started)
	return nil
}

func (s *story) builtBinary(image string) (string, error) {
	name, tag, _ := strings.Cut(path.Base(image), ":")
	if tag == neverPulled {
		return "", fmt.Errorf("image %s can't be pulled", image)
	}
	if err := s.pull(image); err != nil {
		return "", err
	}
	if role, ok := strings.CutPrefix(name, "moorage-"); ok && slices.Contains(roles(), role) {
		return s.roleOf(role)
	}
	file := filepath.Join(s.binaries, name)
	_, err := os.Stat(file)
	return file, err
}

func (s *story) awaitNodes(ctx context.Context) error {
	return until(ctx, "each node says what it has", func(ctx context.Context) error {
		agents, err := s.client.AppsV1().DaemonSets(namespace).Get(ctx, "moorage-node", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err == nil {
			err = s.rolledOut(agents)
		}
		nodes, listed := s.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		words, heard := s.dynamic.Resource(v1alpha1.SchemeGroupVersion.WithResource(v1alpha1.ResourceNodeMountReports)).List(ctx, metav1.ListOptions{})
		if apierrors.IsNotFound(heard) {
			return nil // the older chart has another kind, which this tree's moorage-node does not write
		}
		if err := errors.Join(err, listed, heard); err != nil {
			return err
		}
		silent := map[string]bool{}
		for i := range nodes.Items {
			silent[nodes.Items[i].Name] = true
		}
		for i := range words.Items {
			word := &words.Items[i]
			if _, looked, _ := unstructured.NestedString(word.Object, "status", "observed"); looked {
				delete(silent, word.GetName())
			}
		}
		if len(silent) > 0 {
			return fmt.Errorf("not of %v", slices.Sorted(maps.Keys(silent)))
		}
		return nil
	})
}

func (s *story) rolledOut(d *appsv1.DaemonSet) error {
	is, want := d.Status, d.Status.DesiredNumberScheduled
	if is.ObservedGeneration < d.Generation || is.UpdatedNumberScheduled != want {
		return fmt.Errorf("%s: %d pods are new, want %d", d.Name, is.UpdatedNumberScheduled, want)
	}
	if _, err := s.pods.Exactly(want, d.Spec.Selector); err != nil {
		return fmt.Errorf("%s: %w", d.Name, err)
	}
	return nil
}

func (s *story) awaitMoorage(ctx context.Context) error {
	for _, name := range components() {
		if err := s.pods.AwaitReady(ctx, name); err != nil {
			return err
		}
	}
	if err := s.awaitNodes(ctx); err != nil {
		return err
	}
	for _, name := range []string{"moorage-controller", "moorage-scheduler"} {
		err := until(ctx, name+" leads", func(ctx context.Context) error {
			lease, err := s.client.CoordinationV1().Leases(namespace).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
				return errors.New("nobody holds its lease")
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	probe, err := s.namespace(ctx, "probe", map[string]string{sandbox.EnforceLabel: "true"})
	if err != nil {
		return err
	}
	err = until(ctx, "pods are stamped", func(ctx context.Context) error { return s.stamped(ctx, probe) })
	if err != nil {
		return err
	}
	return s.client.CoreV1().Namespaces().Delete(ctx, probe, metav1.DeleteOptions{})
}

func (s *story) namespace(ctx context.Context, prefix string, labels map[string]string) (string, error) {
	made, err := s.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: prefix + "-", Labels: labels}}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("namespace %s: %w", prefix, err)
	}
	return made.Name, until(ctx, "namespace "+made.Name+" has its service account", func(ctx context.Context) error {
		_, err := s.client.CoreV1().ServiceAccounts(made.Name).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}
