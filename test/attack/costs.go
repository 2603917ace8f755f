// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/test/sandbox"
)

const (
	manyMarks    = 4000  // a policy that looked at each would cost a second
	manyListed   = 20000 // volumes in one status; an object can hold about 1.5 MB
	manyTries    = 20
	listedDriver = "attack.example.com"
	manyInline   = rules.MaxVolumes + 1
)

// Requests with expensive answers: the victim's pods must be stamped and started meanwhile.
func costs() []attempt {
	const works = byWorks
	return []attempt{
		{editor(), fmt.Sprintf("%d annotations and labels of a pod, as a dry run", manyMarks), works, markPod},
		{wildcard(), fmt.Sprintf("%d annotations and owners of a ticket, as a dry run", manyMarks), works, markTicket},
		{ticketer(), fmt.Sprintf("%d tickets that wait for one volume at one node", manyTickets), works, waitInCrowds},
		{editor(), fmt.Sprintf("a pod of %d volumes", manyInline), works, crowdedPod},
		{node(), fmt.Sprintf("%d volumes in volumesInUse of its own", manyListed), works, listVolumes},
		{editor(), fmt.Sprintf("%d clients at every port that announce bodies and send none", slowClients), works, announceBodies},
	}
}

func markPod(ctx context.Context, s *Scene, c clients) error {
	marks := map[string]string{}
	for i := range manyMarks {
		marks[fmt.Sprintf("moorage.dev/%d", i)] = ""
	}
	raw, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": marks, "labels": marks}})
	if err != nil {
		return err
	}
	errs := abreast(manyTries, func(int) error {
		_, err := c.kube.CoreV1().Pods(s.Own).Patch(ctx, s.pod.Name, types.MergePatchType, raw, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	})
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return s.works(ctx)
}

func markTicket(ctx context.Context, s *Scene, c clients) error {
	ticket := s.ticket("marked", v1alpha1.TicketManual, "data")
	marks, owners := map[string]string{}, make([]metav1.OwnerReference, manyMarks)
	for i := range manyMarks {
		marks[fmt.Sprintf("moorage.dev/%d", i)] = ""
		owners[i] = metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: s.pod.Name, UID: types.UID(fmt.Sprint(i))}
	}
	ticket.SetAnnotations(marks)
	ticket.SetOwnerReferences(owners)
	errs := abreast(manyTries, func(int) error {
		_, err := c.dynamic.Resource(sandbox.TicketResource()).Namespace(s.Own).Create(ctx, ticket, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	})
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return s.works(ctx)
}

func waitInCrowds(ctx context.Context, s *Scene, c clients) error {
	elsewhere := s.another(ctx)
	errs := abreast(manyTickets, func(i int) error {
		ticket := s.ticket(fmt.Sprintf("crowd-%d", i), v1alpha1.TicketManual, "data")
		setIn(ticket, "nodeName", elsewhere)
		return c.make(ctx, ticket)
	})
	if err := errors.Join(errs...); err != nil {
		return err
	}
	tickets := s.admin.dynamic.Resource(sandbox.TicketResource()).Namespace(s.Own)
	defer func() {
		_ = tickets.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}) // or their namespace ends them
	}()
	err := wait.PollUntilContextTimeout(ctx, time.Second, sandbox.Patience, true, func(ctx context.Context) (bool, error) {
		list, err := tickets.List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		raw, err := json.Marshal(list)
		return err == nil && strings.Contains(string(raw), string(rules.TooManyTickets)), err
	})
	if err != nil {
		return fmt.Errorf("none of %d tickets is told %s: %w", manyTickets, rules.TooManyTickets, err)
	}
	return s.works(ctx)
}

func crowdedPod(ctx context.Context, s *Scene, c clients) error {
	pod := sandbox.Pod("crowded")
	for i := range manyInline {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: fmt.Sprintf("v%d", i), VolumeSource: corev1.VolumeSource{
			ISCSI: &corev1.ISCSIVolumeSource{TargetPortal: "192.0.2.1", IQN: fmt.Sprintf("iqn.2026-01.com.example:%d", i)}}})
	}
	pods := c.kube.CoreV1().Pods(s.Own)
	if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return err
	}
	defer func() { _ = pods.Delete(ctx, pod.Name, metav1.DeleteOptions{}) }() // or its namespace ends it
	return s.works(ctx)
}

// No VolumeHold is made for a kubelet's unknown volumes.
func listVolumes(ctx context.Context, s *Scene, c clients) error {
	n, err := c.kube.CoreV1().Nodes().Get(ctx, s.pod.Spec.NodeName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	write := func(names []corev1.UniqueVolumeName) error {
		patch, err := json.Marshal(map[string]any{"status": map[string]any{"volumesInUse": names}})
		if err != nil {
			return err
		}
		_, err = c.kube.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
		return err
	}
	names := n.Status.VolumesInUse
	for i := range manyListed {
		names = append(names, corev1.UniqueVolumeName(fmt.Sprintf("kubernetes.io/csi/%s^%d", listedDriver, i)))
	}
	if err := write(names); err != nil {
		return err
	}
	working := s.works(ctx)
	holds, err := s.admin.dynamic.Resource(sandbox.HoldResource()).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range holds.Items {
		if driver, _, _ := unstructured.NestedString(holds.Items[i].Object, "spec", "driver"); driver == listedDriver {
			return fmt.Errorf("VolumeHold %s is made for a name that only a kubelet has listed", holds.Items[i].GetName())
		}
	}
	if err := write(n.Status.VolumesInUse); err != nil { // the kubelet itself also writes the truth
		return err
	}
	return working
}

func announceBodies(ctx context.Context, s *Scene, _ clients) error {
	flooding, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	for i := range len(s.Addresses) * slowClients {
		address := s.Addresses[i/slowClients]
		all.Go(func() {
			for flooding.Err() == nil {
				if announce(flooding, address) != nil {
					return // it speaks no TLS, or the flood has ended
				}
			}
		})
	}
	working := s.works(ctx)
	stop()
	all.Wait()
	return working
}

func announce(ctx context.Context, address string) error {
	conn, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(ctx, "tcp", address) //nolint:gosec // an attacker does not ask who answers
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if _, err := fmt.Fprintf(conn, "POST /mutate/pod HTTP/1.1\r\nHost: webhook\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n{", 8<<20); err != nil {
		return nil //nolint:nilerr // it has hung up
	}
	_, _ = conn.Read(make([]byte, 1)) // any answer
	return nil
}
