// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/moorage-dev/moorage/test/attack"
	"github.com/moorage-dev/moorage/test/sandbox"
)

// attacks has package attack try everything on what the chart installed.
func (s *story) attacks(ctx context.Context) error {
	enforced := map[string]string{sandbox.EnforceLabel: "true"}
	own, err := s.makeWorkload(ctx, "attackers", enforced)
	if err != nil {
		return err
	}
	victim, err := s.makeWorkload(ctx, "victim", enforced)
	if err != nil {
		return err
	}
	strict, err := s.namespace(ctx, "strict", map[string]string{sandbox.EnforceLabel: "true", "moorage.dev/strict": "true"})
	if err != nil {
		return err
	}
	plain, err := s.namespace(ctx, "plain", nil)
	if err != nil {
		return err
	}
	scene := &attack.Scene{Plain: plain, Config: s.cluster.RESTConfig(), Namespace: namespace, Own: own.namespace, Victim: victim.namespace, Strict: strict,
		Addresses: s.addresses(), Works: s.victimStarts(victim)}
	if err := attack.Run(ctx, scene, os.Stdout); err != nil {
		return err
	}
	for _, w := range []*workload{own, victim} {
		if err := s.untouched(ctx, w); err != nil {
			return fmt.Errorf("after the attacks: %w", err)
		}
		if err := s.remove(ctx, w); err != nil {
			return err
		}
	}
	for _, name := range []string{strict, plain} {
		if err := s.client.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// addresses lists the ports that Moorage's processes serve.
func (s *story) addresses() []string {
	var out []string
	for pod, ip := range s.pods.Pods(labels.Everything()) {
		for _, container := range pod.Spec.Containers {
			for _, port := range container.Ports {
				out = append(out, net.JoinHostPort(ip, strconv.Itoa(int(port.ContainerPort))))
			}
		}
	}
	slices.Sort(out)
	return out
}

// victimStarts returns what starts one more pod of a workload, stamped by the webhook,
// and ends it.
func (s *story) victimStarts(w *workload) func(context.Context) error {
	count := 0
	return func(ctx context.Context) error {
		if err := until(ctx, "pods are stamped", func(ctx context.Context) error { return s.stamped(ctx, w.namespace) }); err != nil {
			return err
		}
		count++
		more := &workload{namespace: w.namespace}
		if err := s.makePod(ctx, more, fmt.Sprintf("more-%d", count)); err != nil {
			return err
		}
		return s.client.CoreV1().Pods(w.namespace).Delete(ctx, more.pod.Name, metav1.DeleteOptions{})
	}
}
