// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

const (
	// The bounds of a diagnosis: its last events, last calls of the disk service, and last lines of each
	// log about volumes.
	diagnosisEvents = 25
	diagnosisCalls  = 40
	diagnosisLog    = 8
)

// Diagnose describes the cluster and the scenario's namespace for people who
// want to know why an expectation did not hold.
func (e *Env) Diagnose() string {
	var b strings.Builder
	d := diagnosis{w: &b, view: e.View, namespace: e.Namespace}
	d.pods()
	d.attachments()
	d.nodes()
	d.moorage()
	d.events()
	d.calls()
	d.processes(e.Cluster)
	return b.String()
}

type diagnosis struct {
	w         io.Writer
	view      *View
	namespace string
}

func (d diagnosis) table(title string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(d.w, "%s\n", title)
	t := tabwriter.NewWriter(d.w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintf(t, "  %s\n", strings.Join(row, "\t"))
	}
	_ = t.Flush() // a strings.Builder
}

func (d diagnosis) pods() {
	var rows [][]string
	pods := d.view.Pods(d.namespace)
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	for _, pod := range pods {
		state := string(pod.Status.Phase)
		if pod.DeletionTimestamp != nil {
			state += ", terminating"
		}
		rows = append(rows, []string{pod.Name, state, cmp.Or(pod.Spec.NodeName, "unbound"), podReason(pod)})
	}
	d.table("pods", rows)
	rows = nil
	for _, claim := range d.view.Claims(d.namespace) {
		rows = append(rows, []string{claim.Name, string(claim.Status.Phase), claim.Spec.VolumeName})
	}
	d.table("claims", rows)
}

func podReason(pod *corev1.Pod) string {
	var out []string
	for _, c := range pod.Status.Conditions {
		if c.Status != corev1.ConditionTrue && c.Message != "" {
			out = append(out, string(c.Type)+": "+c.Message)
		}
	}
	if status := pod.Annotations[VolumeStatusAnnotation]; status != "" {
		out = append(out, "volume status: "+status)
	}
	return strings.Join(out, "; ")
}

func (d diagnosis) attachments() {
	list := d.view.Attachments()
	slices.SortFunc(list, func(a, b *storagev1.VolumeAttachment) int { return cmp.Compare(a.Spec.NodeName, b.Spec.NodeName) })
	var rows [][]string
	for _, a := range list {
		volume := "inline"
		if name := a.Spec.Source.PersistentVolumeName; name != nil {
			volume = *name
		}
		rows = append(rows, []string{volume, a.Spec.NodeName, attachmentState(a)})
	}
	d.table("volume attachments", rows)
}

func attachmentState(a *storagev1.VolumeAttachment) string {
	state := "attaching"
	if a.Status.Attached {
		state = "attached"
	}
	if a.DeletionTimestamp != nil {
		state = "detaching"
	}
	if a.Status.AttachError != nil {
		state += ", attach error: " + a.Status.AttachError.Message
	}
	if a.Status.DetachError != nil {
		state += ", detach error: " + a.Status.DetachError.Message
	}
	return state
}

func (d diagnosis) nodes() {
	nodes := d.view.Nodes()
	slices.SortFunc(nodes, func(a, b *corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
	var rows [][]string
	for _, n := range nodes {
		state := "not Ready"
		if IsReady(n) {
			state = "Ready"
		}
		limit := "driver not registered"
		if csi := d.view.CSINode(n.Name); csi != nil {
			for _, driver := range csi.Spec.Drivers {
				if driver.Name == DriverName {
					limit = "no limit"
					if driver.Allocatable != nil && driver.Allocatable.Count != nil {
						limit = fmt.Sprintf("limit %d", *driver.Allocatable.Count)
					}
				}
			}
		}
		rows = append(rows, []string{
			n.Name, state, limit,
			fmt.Sprintf("in use %v", sortedKeys(inUseHandles(n))), fmt.Sprintf("attached %v", sortedKeys(attachedHandles(n))),
		})
	}
	d.table("nodes", rows)
}

func (d diagnosis) moorage() {
	for title, objects := range map[string][]*unstructured.Unstructured{
		"volume holds": d.view.Holds(), "volume tickets": d.view.Tickets(d.namespace),
	} {
		var rows [][]string
		for _, o := range objects {
			rows = append(rows, []string{o.GetName(), compact(o.Object["spec"]), compact(o.Object["status"]), compact(withoutMeta(o))})
		}
		d.table(title, rows)
	}
}

func (d diagnosis) events() {
	events := d.view.Events(d.namespace)
	slices.SortFunc(events, func(a, b *corev1.Event) int { return eventTime(a).Compare(eventTime(b)) })
	var rows [][]string
	for _, e := range events[max(0, len(events)-diagnosisEvents):] {
		rows = append(rows, []string{eventTime(e).Format("15:04:05"), e.InvolvedObject.Kind + "/" + e.InvolvedObject.Name, e.Reason, e.Message})
	}
	d.table("events", rows)
}

func (d diagnosis) calls() {
	calls := d.view.Calls(diskapi.Filter{})
	var rows [][]string
	for _, c := range calls[max(0, len(calls)-diagnosisCalls):] {
		rows = append(rows, []string{c.Time.Format("15:04:05.000"), string(c.Phase), string(c.Call), c.Volume, c.Node, string(c.Outcome), c.Code, c.Detail})
	}
	d.table("calls of the disk service", rows)
}

func (d diagnosis) processes(c *Cluster) {
	var rows [][]string
	for _, p := range c.Processes() {
		rows = append(rows, []string{p.Name, string(p.State), fmt.Sprintf("started %d times", p.Starts), p.Log})
	}
	d.table("processes", rows)
	for _, log := range c.Logs() {
		switch name := strings.TrimSuffix(filepath.Base(log), ".log"); name {
		case Attacher, ControllerManager, Scheduler, MoorageController, MoorageScheduler, MoorageWebhook:
			fmt.Fprintf(d.w, "end of the log of %s\n%s\n", name, indent(tail(log, diagnosisLog)))
		}
	}
}
