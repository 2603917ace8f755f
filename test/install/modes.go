// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/test/sandbox"
)

// switchModes follows docs/operate/modes.md, with a pod running throughout.
func (s *story) switchModes(ctx context.Context, w *workload) error {
	if err := s.run(ctx, stepToStandalone, nil); err != nil {
		return err
	}
	if err := s.bound(ctx, true); err != nil {
		return err
	}
	if err := s.takeBack(ctx); err != nil {
		return err
	}
	if err := s.comesAndGoes(ctx, w, "db-standalone"); err != nil {
		return fmt.Errorf("in Standalone mode: %w", err)
	}
	if err := s.modeIsAsked(ctx); err != nil {
		return err
	}
	if err := s.rollBackTheMode(ctx, w); err != nil {
		return err
	}
	if err := s.startAttachDetach(); err != nil {
		return err
	}
	for _, step := range []string{stepToCooperative, stepHandOver} {
		if err := s.run(ctx, step, nil); err != nil {
			return err
		}
	}
	if err := s.bound(ctx, false); err != nil {
		return err
	}
	if err := s.comesAndGoes(ctx, w, "db-cooperative"); err != nil {
		return fmt.Errorf("in Cooperative mode again: %w", err)
	}
	return s.doctorSays(ctx, "mode", "Cooperative: ")
}

// No other controller attaches meanwhile: Moorage attaches all the same, and doctor names the next step.
func (s *story) rollBackTheMode(ctx context.Context, w *workload) error {
	byName := []string{"upgrade", release, s.chart, "--namespace", namespace, "--reset-then-reuse-values", "--set", "mode=Cooperative"}
	for _, to := range []struct {
		pod  string
		helm []string
	}{
		{"db-rolled-back", []string{"rollback", release, "--namespace", namespace}},
		{"db-not-handed-over", byName},
	} {
		if _, err := s.helmCommand(ctx, to.helm...); err != nil {
			return err
		}
		if err := s.awaitMoorage(ctx); err != nil {
			return err
		}
		if err := s.bound(ctx, true); err != nil {
			return err
		}
		if err := s.comesAndGoes(ctx, w, to.pod); err != nil {
			return fmt.Errorf("helm %s over a change of mode: %w", to.helm[0], err)
		}
		if err := s.doctorSays(ctx, "mode", "Standalone mode goes on"); err != nil {
			return err
		}
	}
	return nil
}

func (s *story) bound(ctx context.Context, want bool) error {
	return until(ctx, fmt.Sprintf("the policy %s is bound: %t", sandbox.VolumesAttachedPolicy, want), func(ctx context.Context) error {
		_, err := s.client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Get(ctx, sandbox.VolumesAttachedPolicy, metav1.GetOptions{})
		switch {
		case err != nil && !apierrors.IsNotFound(err):
			return err
		case (err == nil) != want:
			return fmt.Errorf("it is bound: %t", err == nil)
		}
		return nil
	})
}

func (s *story) comesAndGoes(ctx context.Context, w *workload, next string) error {
	if err := s.untouched(ctx, w); err != nil {
		return err
	}
	if err := s.client.CoreV1().Pods(w.namespace).Delete(ctx, w.pod.Name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	if err := s.podGone(ctx, w); err != nil {
		return err
	}
	err := until(ctx, "the volume is detached", func(ctx context.Context) error {
		nodes, err := s.attachedAt(ctx, w)
		if err == nil && len(nodes) > 0 {
			err = fmt.Errorf("it is attached at %v", nodes)
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := s.makePod(ctx, w, next); err != nil {
		return err
	}
	return s.untouched(ctx, w)
}

// helm refuses to change a Standalone Moorage's mode by default.
func (s *story) modeIsAsked(ctx context.Context) error {
	_, err := s.helmCommand(ctx, "upgrade", release, s.chart, "--namespace", namespace, "--reset-values",
		"--set", "image.registry="+registry, "--dry-run=server")
	if err == nil || !strings.Contains(err.Error(), "name the mode") {
		return fmt.Errorf("helm upgrade without a mode would change Standalone to Cooperative: %w", err)
	}
	return nil
}
