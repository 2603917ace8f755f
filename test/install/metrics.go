// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// notYet matches metrics that are absent before their first event, or without their component. manifests
// has a test that each is measured by a component.
var notYet = regexp.MustCompile(`^(csi_sidecar_.*|apiserver_admission_webhook_.*|leader_election_master_status)$|^moorage_(attacher_.*|extender_.*|node_.*|scheduler_.*|forced_detaches_total|invariant_violations_total|volumes_in_use_unexplained|fenced_volumes|nodes_unreachable_held|nodes_cut_off|volumes_by_state|pods_waiting|pods_waiting_oldest_timestamp_seconds|tickets|tickets_oldest_pending_timestamp_seconds|truth_.*)$`)

var sampleName = regexp.MustCompile(`(?m)^(moorage_[a-z_]+)`)

func (s *story) metrics(ctx context.Context) error {
	files := make([]string, 2)
	for i, name := range []string{"alerts.yaml", "dashboard.json"} {
		path, err := filepath.Abs(filepath.Join(s.repository, "charts/moorage/files", name))
		if err != nil {
			return err
		}
		files[i] = path
	}
	asked, err := s.execute(ctx, nil, "go", "run", "-C", "test/promql", ".", files[0], files[1])
	if err != nil {
		return err
	}
	answered := map[string]bool{}
	for component, port := range map[string]string{"controller": "http://%s:8080/metrics", "webhook": "https://%s:8443/metrics", "node": "http://%s:8080/metrics"} {
		selector := labels.Set{"app.kubernetes.io/name": "moorage", "app.kubernetes.io/component": component}.AsSelector()
		for _, ip := range s.pods.Pods(selector) {
			_, text, err := scrape(ctx, fmt.Sprintf(port, ip), "")
			if err != nil {
				return err
			}
			for _, name := range sampleName.FindAllString(text, -1) {
				answered[name] = true
			}
		}
	}
	var missing []string
	for _, name := range strings.Fields(asked) {
		if !answered[name] && !notYet.MatchString(name) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("alerts or dashboard ask for what nobody measures: %v", missing)
	}
	fmt.Printf("     %d metrics asked for, %d measured\n", len(strings.Fields(asked)), len(answered))
	return nil
}

func scrape(ctx context.Context, url, token string) (code int, text string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	// As the ServiceMonitor does: pods are scraped by their addresses.
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}} //nolint:gosec // see above
	response, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}

func (s *story) secureMetrics(ctx context.Context) error {
	set := func(secure string) error {
		_, err := s.helmCommand(ctx, "upgrade", release, s.chart, "--namespace", namespace, "--reset-then-reuse-values", "--set", "metrics.secure="+secure)
		return errors.Join(err, s.awaitMoorage(ctx))
	}
	if err := set("true"); err != nil {
		return err
	}
	const account = "scraper"
	if _, err := s.client.CoreV1().ServiceAccounts(namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	token, err := s.client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if err := s.scraped(ctx, "", http.StatusUnauthorized); err != nil {
		return fmt.Errorf("without a token: %w", err)
	}
	if err := s.scraped(ctx, token.Status.Token, http.StatusForbidden); err != nil {
		return fmt.Errorf("without the right: %w", err)
	}
	_, err = s.client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: account},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "moorage-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if err := s.scraped(ctx, token.Status.Token, http.StatusOK); err != nil {
		return fmt.Errorf("with the right: %w", err)
	}
	return errors.Join(
		set("false"),
		s.client.RbacV1().ClusterRoleBindings().Delete(ctx, account, metav1.DeleteOptions{}),
		s.client.CoreV1().ServiceAccounts(namespace).Delete(ctx, account, metav1.DeleteOptions{}),
	)
}

// A new right counts once a former answer is forgotten.
func (s *story) scraped(ctx context.Context, token string, want int) error {
	for component, port := range map[string]string{"controller": "https://%s:8080/metrics", "webhook": "https://%s:8443/metrics", "node": "https://%s:8080/metrics"} {
		selector := labels.Set{"app.kubernetes.io/name": "moorage", "app.kubernetes.io/component": component}.AsSelector()
		err := until(ctx, fmt.Sprintf("%s answers %d", component, want), func(ctx context.Context) error {
			for _, ip := range s.pods.Pods(selector) {
				code, _, err := scrape(ctx, fmt.Sprintf(port, ip), token)
				if err != nil {
					return err
				}
				if code != want {
					return fmt.Errorf("the pod at %s answers %d", ip, code)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
