// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
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
	s.attacked = attacked{workloads: []*workload{own, victim}, namespaces: []string{strict, plain}, scene: &attack.Scene{
		Plain: plain, Config: s.cluster.RESTConfig(), Namespace: namespace, Own: own.namespace, Victim: victim.namespace, Strict: strict,
		Addresses: s.addresses(anyPort), Works: s.victimStarts(victim), SigningKey: s.cluster.SigningKey(),
		Extenders: s.addresses(func(component, port string) bool { return component == "scheduler" && port == "extender" }),
		Metrics:   s.addresses(metricsPort),
	}}
	return attack.Run(ctx, s.attacked.scene, os.Stdout)
}

type attacked struct {
	scene      *attack.Scene
	workloads  []*workload // the attackers' and the victim's
	namespaces []string    // without workloads
}

func (s *story) survived(ctx context.Context) error {
	for _, w := range s.attacked.workloads {
		if err := s.untouched(ctx, w); err != nil {
			return fmt.Errorf("after the attacks: %w", err)
		}
	}
	return nil
}

func (s *story) attacksWithoutPolicies(ctx context.Context) error {
	guard := func(enabled bool, args string) error {
		_, err := s.helmCommand(ctx, "upgrade", release, s.chart, "--namespace", namespace, "--reset-then-reuse-values",
			"--set", fmt.Sprintf("policies.enabled=%t", enabled), "--set-json", "controller.extraArgs="+args)
		return errors.Join(err, s.awaitMoorage(ctx))
	}
	if err := guard(false, `["--skip-policy-check"]`); err != nil {
		return err
	}
	if err := attack.RunUnguarded(ctx, s.attacked.scene, os.Stdout); err != nil {
		return err
	}
	if err := errors.Join(guard(true, "[]"), s.bound(ctx, true), s.survived(ctx)); err != nil {
		return err
	}
	for _, w := range s.attacked.workloads {
		if err := s.remove(ctx, w); err != nil {
			return err
		}
	}
	for _, name := range s.attacked.namespaces {
		if err := s.client.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			return err
		}
	}
	return nil
}

func (s *story) openDoors(ctx context.Context, open bool) error {
	_, err := s.helmCommand(ctx, "upgrade", release, s.chart, "--namespace", namespace, "--reset-then-reuse-values",
		"--set", fmt.Sprintf("extender.enabled=%t,metrics.secure=%t", open, open))
	if err == nil {
		err = s.awaitMoorage(ctx)
	}
	return err
}

func anyPort(string, string) bool { return true }

func metricsPort(_, port string) bool { return port != "extender" }

func (s *story) addresses(chosen func(component, port string) bool) []string {
	var out []string
	for pod, ip := range s.pods.Pods(labels.Everything()) {
		for _, container := range pod.Spec.Containers {
			for _, port := range container.Ports {
				if !chosen(pod.Labels["app.kubernetes.io/component"], port.Name) {
					continue
				}
				out = append(out, net.JoinHostPort(ip, strconv.Itoa(int(port.ContainerPort))))
			}
		}
	}
	slices.Sort(out)
	return out
}

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
