// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/workqueue"

	"github.com/moorage-dev/moorage/api/client"
	"github.com/moorage-dev/moorage/api/v1alpha1"
)

// abreast is how many writes are under way at once.
const abreast = 8

// ready is how long the API server may take to serve a new CRD.
const ready = time.Minute

// meter writes, and says what that took.
type meter struct {
	own   client.Interface
	count int
}

// watch reads what is written of tickets and holds until ctx is done.
func (m meter) watch(ctx context.Context) error {
	open := func(what string, begin func(context.Context, metav1.ListOptions) (watch.Interface, error)) error {
		var opened watch.Interface
		err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, ready, true, func(ctx context.Context) (bool, error) {
			var err error
			opened, err = begin(context.WithoutCancel(ctx), metav1.ListOptions{})
			return err == nil, nil
		})
		if err != nil {
			return fmt.Errorf("watch %s: %w", what, err)
		}
		go func() {
			defer opened.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case _, ok := <-opened.ResultChan():
					if !ok {
						return
					}
				}
			}
		}()
		return nil
	}
	if err := open("tickets", m.own.VolumeTickets(metav1.NamespaceAll).Watch); err != nil {
		return err
	}
	return open("holds", m.own.VolumeHolds().Watch)
}

// all measures each kind of write, twice: the first round warms up.
func (m meter) all(ctx context.Context) error {
	for _, round := range []string{"a", "b"} {
		tickets := make([]*v1alpha1.VolumeTicket, m.count)
		holds := make([]*v1alpha1.VolumeHold, m.count)
		for _, kind := range []struct {
			name  string
			write func(i int) error
		}{
			{"create a ticket", func(i int) (err error) {
				tickets[i], err = m.own.VolumeTickets(namespace).Create(ctx, ticket(round, i), metav1.CreateOptions{})
				return err
			}},
			{"grant it", func(i int) error {
				_, err := m.own.VolumeTickets(namespace).UpdateStatus(ctx, granted(tickets[i], i), metav1.UpdateOptions{})
				return err
			}},
			{"create a hold", func(i int) (err error) {
				holds[i], err = m.own.VolumeHolds().Create(ctx, hold(round, i, "", "worker-1"), metav1.CreateOptions{})
				return err
			}},
			{"change it first", func(i int) (err error) {
				holds[i], err = m.own.VolumeHolds().Update(ctx, hold(round, i, holds[i].ResourceVersion, "worker-2"), metav1.UpdateOptions{})
				return err
			}},
			{"change it again", func(i int) (err error) {
				holds[i], err = m.own.VolumeHolds().Update(ctx, hold(round, i, holds[i].ResourceVersion, "worker-3"), metav1.UpdateOptions{})
				return err
			}},
		} {
			took, err := m.time(ctx, kind.write)
			if err != nil {
				return fmt.Errorf("%s: %w", kind.name, err)
			}
			if round == "b" {
				fmt.Printf("  %-16s %.2f ms CPU\n", kind.name, took.Seconds()*1000)
			}
		}
	}
	return nil
}

// time returns the CPU time of this process for one write of a kind.
func (m meter) time(ctx context.Context, write func(i int) error) (time.Duration, error) {
	failed := make(chan error, m.count)
	before := used()
	workqueue.ParallelizeUntil(ctx, abreast, m.count, func(i int) {
		if err := write(i); err != nil {
			failed <- err
		}
	})
	took := used() - before
	select {
	case err := <-failed:
		return 0, err
	default:
		return took / time.Duration(m.count), nil
	}
}

// used is the CPU time that this process has taken.
func used() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
