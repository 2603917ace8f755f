// SPDX-License-Identifier: Apache-2.0

package attacher

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// store has each object's newest state, from informers or own writes. Its methods are serial. Objects are
// shared and never changed.
type store struct {
	attachments map[string]*storagev1.VolumeAttachment
	volumes     map[string]*corev1.PersistentVolume
	nodes       map[string]*storagev1.CSINode
	// Names of VolumeAttachments, of any driver, by PersistentVolume and by node.
	byVolume, byNode map[string]map[string]struct{}
}

func newStore() *store {
	return &store{
		attachments: map[string]*storagev1.VolumeAttachment{},
		volumes:     map[string]*corev1.PersistentVolume{},
		nodes:       map[string]*storagev1.CSINode{},
		byVolume:    map[string]map[string]struct{}{},
		byNode:      map[string]map[string]struct{}{},
	}
}

// PersistentVolume and CSINode make the store an objects.Catalog.
func (s *store) PersistentVolume(name string) *corev1.PersistentVolume { return s.volumes[name] }
func (s *store) CSINode(name string) *storagev1.CSINode                { return s.nodes[name] }

// older: a state comes before the stored one. Versions compare as numbers if possible; otherwise their
// order counts.
func older(a, b metav1.Object) bool {
	if a.GetUID() != b.GetUID() {
		return false
	}
	c, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && c < 0
}

// seeAttachment says whether the state is new, and which namesake is gone.
func (s *store) seeAttachment(va *storagev1.VolumeAttachment) (replaced types.UID, fresh bool) {
	have := s.attachments[va.Name]
	if have != nil && older(va, have) {
		return "", false
	}
	if have != nil && have.UID != va.UID {
		replaced = have.UID
	}
	s.attachments[va.Name] = va
	link(s.byNode, va.Spec.NodeName, va.Name)
	if pv := va.Spec.Source.PersistentVolumeName; pv != nil {
		link(s.byVolume, *pv, va.Name)
	}
	return replaced, true
}

func (s *store) loseAttachment(name string, uid types.UID) bool {
	have := s.attachments[name]
	if have == nil || have.UID != uid {
		return false
	}
	delete(s.attachments, name)
	unlink(s.byNode, have.Spec.NodeName, name)
	if pv := have.Spec.Source.PersistentVolumeName; pv != nil {
		unlink(s.byVolume, *pv, name)
	}
	return true
}

func (s *store) seeVolume(pv *corev1.PersistentVolume) bool {
	if have := s.volumes[pv.Name]; have != nil && older(pv, have) {
		return false
	}
	s.volumes[pv.Name] = pv
	return true
}

func (s *store) loseVolume(name string, uid types.UID) bool {
	if have := s.volumes[name]; have == nil || have.UID != uid {
		return false
	}
	delete(s.volumes, name)
	return true
}

func link(index map[string]map[string]struct{}, key, name string) {
	if index[key] == nil {
		index[key] = map[string]struct{}{}
	}
	index[key][name] = struct{}{}
}

func unlink(index map[string]map[string]struct{}, key, name string) {
	if delete(index[key], name); len(index[key]) == 0 {
		delete(index, key)
	}
}
