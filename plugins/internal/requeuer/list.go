// SPDX-License-Identifier: Apache-2.0

package requeuer

import "k8s.io/apimachinery/pkg/types"

// list has the pods on their way to a node, by UID. It is not safe for parallel use.
//
//	Invariant: idle has exactly the pods of all that are not reserved.
type list struct {
	all, idle map[types.UID]*waiting
}

func newList() list {
	return list{all: map[types.UID]*waiting{}, idle: map[types.UID]*waiting{}}
}

// put replaces the pod's earlier entry.
func (l *list) put(entry *waiting) {
	l.all[entry.pod.UID] = entry
	l.reserve(entry.pod.UID, entry.reserved)
}

func (l *list) drop(uid types.UID) {
	delete(l.all, uid)
	delete(l.idle, uid)
}

// reserve does not list a pod.
func (l *list) reserve(uid types.UID, has bool) {
	entry := l.all[uid]
	if entry == nil {
		return
	}
	entry.reserved = has
	if has {
		delete(l.idle, uid)
	} else {
		l.idle[uid] = entry
	}
}
