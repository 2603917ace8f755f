// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/manifests"
)

const schedulerUser = "system:serviceaccount:" + manifests.Namespace + ":moorage-scheduler"

func ticketOf(kind ledger.TicketType) *v1alpha1.VolumeTicket {
	return &v1alpha1.VolumeTicket{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.KindVolumeTicket},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "6f1c",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "db-0", UID: "6f1c"}}},
		Spec: v1alpha1.VolumeTicketSpec{Type: v1alpha1.TicketType(kind), NodeName: "worker-1",
			Volumes: []v1alpha1.TicketVolume{{Claim: &v1alpha1.ClaimReference{Name: "data"}}}},
	}
}

func TestTicketTypesAreUsedByRight(t *testing.T) {
	policy := loadPolicy(t, "moorage-tickets")
	may := map[string]func(ledger.TicketType) bool{
		"nobody":      func(ledger.TicketType) bool { return false },
		"tess":        ledger.TicketType.Namespaced,
		"walt":        ledger.TicketType.Namespaced, // with any Role
		"mallory":     ledger.TicketType.Namespaced,
		"ingo":        ledger.TicketType.Namespaced, // moorage-tickets-all, but bound in the namespace only
		"ina":         func(ledger.TicketType) bool { return true },
		"root":        func(ledger.TicketType) bool { return true },
		schedulerUser: func(ledger.TicketType) bool { return false },
		controllerUser: func(kind ledger.TicketType) bool {
			return kind == ledger.TypeSnapshot || kind == ledger.TypeClone || kind == ledger.TypeExpansion
		},
	}
	for user, may := range may {
		for _, kind := range ledger.TicketTypes() {
			want := ""
			if !may(kind) {
				want = user + " may not use tickets of type " + string(kind)
			}
			made := ticketOf(kind)
			r := request{user: user, namespace: "shop", resource: tickets,
				kind: v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindVolumeTicket), now: made}
			if want == "" && kind.Timed() {
				check(t, policy.judge(t, r), "nothing interrupts a ticket of this type")
			}
			if kind.Timed() {
				made.Spec.TTLSeconds = new(int64(60))
			}
			check(t, policy.judge(t, r), want)
		}
	}
	elsewhere := ticketOf(ledger.TypeManual)
	elsewhere.Namespace = "bank"
	check(t, policy.judge(t, request{user: "tess", namespace: "bank", resource: tickets,
		kind: v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindVolumeTicket), now: elsewhere}), "binds the ClusterRole moorage-tickets there")
}

// A tenant can't keep a storage system's ticket beyond its time. Other changes need no right.
func TestTicketsAreRenewedByRight(t *testing.T) {
	policy := loadPolicy(t, "moorage-tickets")
	renewed := func(kind ledger.TicketType, value string) *v1alpha1.VolumeTicket {
		out := ticketOf(kind)
		out.Annotations = map[string]string{"a": "b"}
		if value != "" {
			out.Annotations[v1alpha1.AnnotationRenewed] = value
		}
		return out
	}
	for _, test := range []struct {
		user        string
		before, now *v1alpha1.VolumeTicket
		want        string
	}{
		{"tess", renewed(ledger.TypeBackup, ""), renewed(ledger.TypeBackup, "1"), ""},
		{"tess", ticketOf(ledger.TypeBackup), renewed(ledger.TypeBackup, "1"), ""},
		{"tess", renewed(ledger.TypeRestore, ""), renewed(ledger.TypeRestore, "1"), "tess may not use tickets of type Restore"},
		{"tess", renewed(ledger.TypeRestore, "1"), renewed(ledger.TypeRestore, "2"), "may not use tickets of type Restore"},
		{"tess", renewed(ledger.TypeRestore, "1"), renewed(ledger.TypeRestore, ""), "may not use tickets of type Restore"},
		{"tess", ticketOf(ledger.TypeRestore), renewed(ledger.TypeRestore, ""), ""},
		{"tess", renewed(ledger.TypeRestore, "1"), renewed(ledger.TypeRestore, "1"), ""},
		{"ina", renewed(ledger.TypeRestore, "1"), renewed(ledger.TypeRestore, "2"), ""},
		{"nobody", renewed(ledger.TypeBackup, "1"), renewed(ledger.TypeBackup, "2"), "nobody may not use tickets of type Backup"},
	} {
		r := request{user: test.user, namespace: "shop", resource: tickets,
			kind: v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindVolumeTicket), now: test.now, before: test.before}
		check(t, policy.judge(t, r), test.want)
	}
}

func TestTicketRolesHaveTheTypes(t *testing.T) {
	var all rbacObjects
	all.read(t, "rbac.yaml")
	for role, has := range map[string]func(ledger.TicketType) bool{
		"moorage-tickets":     ledger.TicketType.Namespaced,
		"moorage-tickets-all": func(ledger.TicketType) bool { return true },
	} {
		i := slices.IndexFunc(all.clusterRoles, func(r *rbacv1.ClusterRole) bool { return r.Name == role })
		if i < 0 {
			t.Fatalf("there is no ClusterRole %s", role)
		}
		if len(all.clusterRoles[i].Labels) == 0 || all.clusterRoles[i].Labels["rbac.authorization.k8s.io/aggregate-to-edit"] != "" {
			t.Errorf("%s is aggregated into edit by default", role)
		}
		var have []string
		for _, rule := range all.clusterRoles[i].Rules {
			if slices.Contains(rule.Verbs, "use") {
				have = append(have, rule.ResourceNames...)
			}
		}
		for _, kind := range ledger.TicketTypes() {
			if got := slices.Contains(have, string(kind)); got != has(kind) {
				t.Errorf("%s has type %s: %t, want %t", role, kind, got, has(kind))
			}
		}
	}
}
