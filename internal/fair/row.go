// SPDX-License-Identifier: Apache-2.0

// Package fair has queues in which no tenant holds up another.
package fair

import "container/list"

// Row has waiting keys, each for a tenant: tenants take turns, and a tenant's keys are taken in their
// order. A tenant with one key waits for at most one key of each other tenant. The zero value is empty.
// Not for parallel use.
//
//	Invariant: each of tenants is a *tenantRow with at least one key, and is in rows by its name
//	Invariant: spots has the place of each key
type Row[K comparable] struct {
	tenants list.List // in order of turns
	rows    map[string]*list.Element
	spots   map[K]spot
}

type tenantRow struct {
	name string
	keys list.List
}

// spot is a key's place.
type spot struct{ tenant, key *list.Element }

// Push puts a key at its tenant's end, unless it waits already.
func (r *Row[K]) Push(tenant string, key K) {
	if r.Has(key) {
		return
	}
	if r.spots == nil {
		r.rows, r.spots = map[string]*list.Element{}, map[K]spot{}
	}
	at := r.rows[tenant]
	if at == nil {
		at = r.tenants.PushBack(&tenantRow{name: tenant})
		r.rows[tenant] = at
	}
	r.spots[key] = spot{at, at.Value.(*tenantRow).keys.PushBack(key)}
}

// Pop takes the next tenant's first key, and the tenant becomes last; false: no key.
func (r *Row[K]) Pop() (key K, ok bool) {
	at := r.tenants.Front()
	if at == nil {
		return key, false
	}
	key = at.Value.(*tenantRow).keys.Front().Value.(K)
	r.tenants.MoveToBack(at)
	r.Remove(key)
	return key, true
}

// Remove ends a key's wait, if any.
func (r *Row[K]) Remove(key K) {
	s, ok := r.spots[key]
	if !ok {
		return
	}
	delete(r.spots, key)
	row := s.tenant.Value.(*tenantRow)
	if row.keys.Remove(s.key); row.keys.Len() == 0 {
		r.tenants.Remove(s.tenant)
		delete(r.rows, row.name)
	}
}

// Has says whether a key waits.
func (r *Row[K]) Has(key K) bool {
	_, ok := r.spots[key]
	return ok
}

// Tenant is a waiting key's tenant; false: no wait.
func (r *Row[K]) Tenant(key K) (string, bool) {
	s, waits := r.spots[key]
	if !waits {
		return "", false
	}
	return s.tenant.Value.(*tenantRow).name, true
}

// Len counts the waiting keys.
func (r *Row[K]) Len() int { return len(r.spots) }
