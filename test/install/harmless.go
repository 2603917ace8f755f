// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/audit"
)

const neverPulled = "never-pulled"

// Without an opt-in Moorage's accounts write only events, and Leases of their namespace.
func (s *story) harmless(ctx context.Context) error {
	bystander, err := s.makeWorkload(ctx, "bystander", nil)
	if err != nil {
		return err
	}
	// A controller deletes an earlier controller's leftovers of gone volumes.
	left := s.dynamic.Resource(v1alpha1.SchemeGroupVersion.WithResource("volumeholds"))
	if err := left.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return fmt.Errorf("delete VolumeHolds that are left: %w", err)
	}
	log, err := audit.From(s.cluster.AuditLog())
	if err != nil {
		return err
	}
	if err := s.run(ctx, stepCooperative, nil); err != nil {
		return err
	}
	if err := s.awaitMoorage(ctx); err != nil {
		return err
	}
	if err := s.comesAndGoes(ctx, bystander, "db-beside-moorage"); err != nil {
		return err
	}
	if err := s.remove(ctx, bystander); err != nil {
		return err
	}
	events, err := log.Read()
	if err != nil {
		return err
	}
	asked, wrote := 0, []error{}
	for _, e := range events {
		if !sandbox.IsMoorage(e.User.Username) {
			continue
		}
		asked++
		if e.IsWrite() && e.Object.Namespace != namespace {
			wrote = append(wrote, fmt.Errorf("Moorage wrote, and nobody had opted in: %s", e))
		}
	}
	if asked == 0 {
		return errors.New("the audit log has no request of Moorage's: nothing is shown by that")
	}
	fmt.Printf("     %d requests of Moorage's, %d writes outside its own namespace\n", asked, len(wrote))
	return errors.Join(wrote...)
}

// Pods with volumes still start, by the attach/detach controller.
func (s *story) neverStarts(ctx context.Context) error {
	before, err := s.makeWorkload(ctx, "never-starts", nil)
	if err != nil {
		return err
	}
	if err := s.installChart(ctx, s.chart, "--set", "mode=Standalone,image.registry="+registry+",image.tag="+neverPulled); err != nil {
		return err
	}
	if err := s.bound(ctx, false); err != nil {
		return err
	}
	if err := s.comesAndGoes(ctx, before, "db-without-a-controller"); err != nil {
		return err
	}
	if err := s.bound(ctx, false); err != nil {
		return err
	}
	if err := s.doctorSays(ctx, "mode", "its controller has not led yet"); err != nil {
		return err
	}
	if err := s.remove(ctx, before); err != nil {
		return err
	}
	return s.takeOut(ctx)
}

func (s *story) doctorSays(ctx context.Context, check, says string) error {
	// It fails when it finds an error; only its output counts.
	out, failed := s.execute(ctx, []string{"KUBECONFIG=" + s.cluster.Kubeconfig()}, filepath.Join(s.binaries, "kubectl-moorage"), "doctor", "-o", "json", "--probe=false")
	var report struct {
		Findings []struct{ Check, Severity, Message string }
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		return fmt.Errorf("doctor: %w", errors.Join(err, failed))
	}
	var said []string
	for _, f := range report.Findings {
		if f.Check == check {
			said = append(said, f.Severity+": "+f.Message)
		}
	}
	if !strings.Contains(strings.Join(said, "\n"), says) {
		return fmt.Errorf("doctor says of %s %q, want %q", check, said, says)
	}
	fmt.Printf("     doctor: %s\n", strings.Join(said, "; "))
	return nil
}

func (s *story) allKilled(ctx context.Context, mode string) error {
	w, err := s.makeWorkload(ctx, "killed", map[string]string{sandbox.EnforceLabel: "true"})
	if err != nil {
		return err
	}
	killed, err := s.pods.KillAll(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("     %d processes were killed\n", killed)
	if err := s.untouched(ctx, w); err != nil {
		return fmt.Errorf("while nobody is there: %w", err)
	}
	if err := s.awaitMoorage(ctx); err != nil {
		return err
	}
	if err := s.comesAndGoes(ctx, w, "db-after-all"); err != nil {
		return err
	}
	if err := s.doctorSays(ctx, "mode", mode+": "); err != nil {
		return err
	}
	return s.remove(ctx, w)
}
