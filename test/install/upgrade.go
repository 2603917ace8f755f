// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/test/sandbox"
)

func (s *story) upgrade(ctx context.Context) error {
	if err := s.run(ctx, stepFromOlder, nil); err != nil {
		return err
	}
	if err := s.awaitMoorage(ctx); err != nil {
		return err
	}
	s.upgraded = time.Now()
	if err := s.untouched(ctx, s.workload); err != nil {
		return fmt.Errorf("after the upgrade: %w", err)
	}
	if err := s.granted(ctx, s.workload); err != nil {
		return fmt.Errorf("after the upgrade: %w", err)
	}
	// The ticket still works: the volume stays when the pod goes.
	return s.dissolve(ctx)
}

func (s *story) dissolve(ctx context.Context) error {
	w := s.workload
	if err := s.client.CoreV1().Pods(w.namespace).Delete(ctx, w.pod.Name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	if err := s.podGone(ctx, w); err != nil {
		return err
	}
	if err := s.makePod(ctx, w, "db-again"); err != nil {
		return fmt.Errorf("after the upgrade: %w", err)
	}
	if err := s.untouched(ctx, w); err != nil {
		return fmt.Errorf("a pod that came after the upgrade: %w", err)
	}
	tickets := s.dynamic.Resource(sandbox.TicketResource()).Namespace(w.namespace)
	if err := tickets.Delete(ctx, ticketName, metav1.DeleteOptions{}); err != nil {
		return err
	}
	return s.remove(ctx, w)
}

func (s *story) podGone(ctx context.Context, w *workload) error {
	return until(ctx, "pod "+w.pod.Name+" is gone", func(ctx context.Context) error {
		pods, err := s.client.CoreV1().Pods(w.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, pod := range pods.Items {
			if pod.UID == w.pod.UID {
				return fmt.Errorf("it is there, deleted at %s", pod.DeletionTimestamp)
			}
		}
		return nil
	})
}

// A namespace may have thousands of tickets and events. A busy API server gives up their deletion, a single
// call, after a minute; the namespace controller repeats it.
const removalPatience = 4 * time.Minute

func (s *story) remove(ctx context.Context, w *workload) error {
	err := s.client.CoreV1().Pods(w.namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	if err == nil {
		err = s.client.CoreV1().Namespaces().Delete(ctx, w.namespace, metav1.DeleteOptions{})
	}
	if err != nil {
		return err
	}
	return untilWithin(ctx, removalPatience, "namespace "+w.namespace+" and its disk are gone", func(ctx context.Context) error {
		if _, err := s.client.CoreV1().Namespaces().Get(ctx, w.namespace, metav1.GetOptions{}); err == nil {
			return fmt.Errorf("the namespace is there")
		}
		disks, err := s.cluster.Disk().Disks(ctx)
		if err != nil {
			return err
		}
		for _, disk := range disks {
			if disk.Volume == w.volume {
				return fmt.Errorf("the disk is there, attached at %v", disk.Attached)
			}
		}
		return nil
	})
}
