// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"encoding/json"
	"net/http"
	"sort"
	"strconv"
	"strings"
)

type event struct {
	version int
	kind    string // ADDED, MODIFIED, DELETED
	key     string
	object  object
}

// log is called with mu held.
func (s *Server) log(kind, key string, o object) {
	s.history = append(s.history, event{s.version, kind, key, o})
	s.changed.Broadcast()
}

// watch first sends all objects if asked as by a reflector (sendInitialEvents).
func (s *Server) watch(w http.ResponseWriter, r *http.Request, c call) {
	prefix := c.Resource + "/" + c.namespace
	encoder := json.NewEncoder(w)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	send := func(kind string, o object) bool {
		err := encoder.Encode(map[string]any{"type": kind, "object": o})
		w.(http.Flusher).Flush()
		return err == nil
	}
	stop := make(chan struct{})
	defer close(stop)
	go func() { // wakes the wait below when the client is gone
		select {
		case <-r.Context().Done():
		case <-stop:
		}
		s.wake()
	}()
	next, outages := s.initial(c, prefix, send)
	for {
		events, ok := s.since(r, &next, prefix, outages)
		if !ok {
			return
		}
		for _, e := range events {
			if !send(e.kind, e.object) {
				return
			}
		}
	}
}

// A further outage ends the watch. An older version than the last outage is an error.
func (s *Server) initial(c call, prefix string, send func(string, object) bool) (next, outages int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.query["sendInitialEvents"] != "true" {
		from, _ := strconv.Atoi(c.query["resourceVersion"])
		if from < s.compacted {
			send("ERROR", object{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": http.StatusGone})
			return len(s.history), -1
		}
		return sort.Search(len(s.history), func(i int) bool { return s.history[i].version > from }), s.outages
	}
	sample := object{}
	for key, o := range s.objects {
		if strings.HasPrefix(key, prefix) {
			send("ADDED", o)
		}
	}
	sample["kind"], sample["apiVersion"] = kindOf(c.Resource)
	sample.meta()["resourceVersion"] = strconv.Itoa(s.version)
	sample.meta()["annotations"] = map[string]any{"k8s.io/initial-events-end": "true"}
	send("BOOKMARK", sample)
	return len(s.history), s.outages
}

func (s *Server) since(r *http.Request, next *int, prefix string, outages int) ([]event, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if s.outages != outages {
			return nil, false
		}
		var events []event
		for ; *next < len(s.history) && !s.lags; *next++ {
			if e := s.history[*next]; strings.HasPrefix(e.key, prefix) {
				events = append(events, e)
			}
		}
		if len(events) > 0 {
			return events, true
		}
		select {
		case <-s.ending:
			return nil, false
		case <-r.Context().Done():
			return nil, false
		default:
			s.changed.Wait()
		}
	}
}

// It takes the lock: a watch between its look and its wait would miss the wake.
func (s *Server) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed.Broadcast()
}

func kindOf(resource string) (kind, apiVersion string) {
	named := map[string][2]string{
		"nodes": {"Node", "v1"}, "pods": {"Pod", "v1"}, "persistentvolumes": {"PersistentVolume", "v1"},
		"secrets":                {"Secret", "v1"},
		"persistentvolumeclaims": {"PersistentVolumeClaim", "v1"},
		"storageclasses":         {"StorageClass", "storage.k8s.io/v1"}, "csidrivers": {"CSIDriver", "storage.k8s.io/v1"},
		"csinodes": {"CSINode", "storage.k8s.io/v1"}, "volumeattachments": {"VolumeAttachment", "storage.k8s.io/v1"},
		"volumetickets": {"VolumeTicket", "moorage.dev/v1alpha1"}, "volumeholds": {"VolumeHold", "moorage.dev/v1alpha1"},
		"attachpolicies": {"AttachPolicy", "moorage.dev/v1alpha1"}, "nodemountreports": {"NodeMountReport", "moorage.dev/v1alpha1"}, "leases": {"Lease", "coordination.k8s.io/v1"},
		"networkfences":                     {"NetworkFence", "csiaddons.openshift.io/v1alpha1"},
		"networkfenceclasses":               {"NetworkFenceClass", "csiaddons.openshift.io/v1alpha1"},
		"csiaddonsnodes":                    {"CSIAddonsNode", "csiaddons.openshift.io/v1alpha1"},
		"volumesnapshotcontents":            {"VolumeSnapshotContent", "snapshot.storage.k8s.io/v1"},
		"volumegroupsnapshotcontents":       {"VolumeGroupSnapshotContent", "groupsnapshot.storage.k8s.io/v1beta2"},
		"events":                            {"Event", "v1"},
		"namespaces":                        {"Namespace", "v1"},
		"services":                          {"Service", "v1"},
		"replicationcontrollers":            {"ReplicationController", "v1"},
		"configmaps":                        {"ConfigMap", "v1"},
		"replicasets":                       {"ReplicaSet", "apps/v1"},
		"deployments":                       {"Deployment", "apps/v1"},
		"daemonsets":                        {"DaemonSet", "apps/v1"},
		"jobs":                              {"Job", "batch/v1"},
		"cronjobs":                          {"CronJob", "batch/v1"},
		"endpointslices":                    {"EndpointSlice", "discovery.k8s.io/v1"},
		"clusterroles":                      {"ClusterRole", "rbac.authorization.k8s.io/v1"},
		"clusterrolebindings":               {"ClusterRoleBinding", "rbac.authorization.k8s.io/v1"},
		"mutatingwebhookconfigurations":     {"MutatingWebhookConfiguration", "admissionregistration.k8s.io/v1"},
		"statefulsets":                      {"StatefulSet", "apps/v1"},
		"poddisruptionbudgets":              {"PodDisruptionBudget", "policy/v1"},
		"csistoragecapacities":              {"CSIStorageCapacity", "storage.k8s.io/v1"},
		"resourceclaims":                    {"ResourceClaim", "resource.k8s.io/v1"},
		"resourceslices":                    {"ResourceSlice", "resource.k8s.io/v1"},
		"deviceclasses":                     {"DeviceClass", "resource.k8s.io/v1"},
		"devicetaintrules":                  {"DeviceTaintRule", "resource.k8s.io/v1"},
		"validatingadmissionpolicies":       {"ValidatingAdmissionPolicy", "admissionregistration.k8s.io/v1"},
		"validatingadmissionpolicybindings": {"ValidatingAdmissionPolicyBinding", "admissionregistration.k8s.io/v1"},
	}[resource]
	return named[0], named[1]
}
