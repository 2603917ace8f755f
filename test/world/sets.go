// SPDX-License-Identifier: Apache-2.0

package world

import (
	"maps"
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Worlds are cloned often: their maps and lists are replaced, never changed.

func with[K, V comparable](m map[K]V, k K, v V) map[K]V {
	if old, ok := m[k]; ok && old == v {
		return m
	}
	m = maps.Clone(m)
	if m == nil {
		m = map[K]V{}
	}
	m[k] = v
	return m
}

func withoutNode(m map[At]bool, n ledger.NodeName) map[At]bool {
	for at := range m {
		if at.Node == n {
			m = without(m, at)
		}
	}
	return m
}

func withList[K comparable, T any](m map[K][]T, k K, list []T) map[K][]T {
	m = maps.Clone(m)
	m[k] = list
	return m
}

func without[K comparable, V any](m map[K]V, k K) map[K]V {
	if _, ok := m[k]; ok {
		m = maps.Clone(m)
		delete(m, k)
	}
	return m
}

func include[T comparable](list []T, e T, order func(a, b T) int) []T {
	i, there := slices.BinarySearchFunc(list, e, order)
	if there {
		return list
	}
	return slices.Insert(slices.Clip(list), i, e)
}

func exclude[T comparable](list []T, e T) []T {
	if !slices.Contains(list, e) {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), func(other T) bool { return other == e })
}

func SortVolumes(list []ledger.VolumeID) []ledger.VolumeID {
	slices.SortFunc(list, ledger.VolumeID.Compare)
	return list
}

func lacks(list []ledger.VolumeID, v ledger.VolumeID) bool { return !slices.Contains(list, v) }
