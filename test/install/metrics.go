// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// notYet matches metrics that are not there before what they count has happened,
// or where a component is not installed. manifests has a test that somebody
// measures each.
var notYet = regexp.MustCompile(`^(csi_sidecar_.*|apiserver_admission_webhook_.*|leader_election_master_status)$|^moorage_(attacher_.*|extender_.*|node_.*|scheduler_.*|forced_detaches_total|invariant_violations_total|volumes_in_use_unexplained|fenced_volumes|volumes_by_state|pods_waiting|pods_waiting_oldest_timestamp_seconds|tickets|tickets_oldest_pending_timestamp_seconds|truth_.*)$`)

var sampleName = regexp.MustCompile(`(?m)^(moorage_[a-z_]+)`)

// metrics compares what alerts and dashboard ask for with what the processes
// answer to a scrape.
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
	for component, port := range map[string]string{"controller": "http://%s:8080/metrics", "webhook": "https://%s:8443/metrics"} {
		selector := labels.Set{"app.kubernetes.io/name": "moorage", "app.kubernetes.io/component": component}.AsSelector()
		for _, ip := range s.pods.Pods(selector) {
			text, err := scrape(ctx, fmt.Sprintf(port, ip))
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

func scrape(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	// As the ServiceMonitor does: pods are scraped by their addresses.
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}} //nolint:gosec // see above
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}
