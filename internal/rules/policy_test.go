// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// Set fields count, also with a default value. Slots and calls are always the driver's.
func TestPolicyOfClassInherits(t *testing.T) {
	type policy = ledger.Policy
	duration := func(d *time.Duration) any {
		if d == nil {
			return "not set"
		}
		return *d
	}
	never, hour, most, few := time.Duration(-1), time.Hour, int32(9), int32(1)
	for name, test := range map[string]struct {
		driver, class policy
		says          ledger.PolicyFields // the class's policy, with fields of value zero
		get           func(policy) any
		absent, set   any
	}{
		"detachDelay": {policy{DetachDelay: time.Hour}, policy{}, ledger.FieldDetachDelay,
			func(p policy) any { return p.DetachDelay }, time.Hour, time.Duration(0)},
		"forceDetach.afterPodGone": {policy{AfterPodGone: &never}, policy{}, 0,
			func(p policy) any { return duration(p.AfterPodGone) }, never, never},
		"forceDetach.afterPodGone, set": {policy{AfterPodGone: &never}, policy{AfterPodGone: &hour}, 0,
			func(p policy) any { return duration(p.AfterPodGone) }, hour, hour},
		"forceDetach.afterUnreachable": {policy{AfterUnreachable: &hour}, policy{}, 0,
			func(p policy) any { return duration(p.AfterUnreachable) }, hour, hour},
		"forceDetach.afterUnreachable, set": {policy{AfterUnreachable: &hour}, policy{AfterUnreachable: &never}, 0,
			func(p policy) any { return duration(p.AfterUnreachable) }, never, never},
		"liveMigration": {policy{LiveMigration: true}, policy{}, ledger.FieldLiveMigration,
			func(p policy) any { return p.LiveMigration }, true, false},
		"unpublishFences": {policy{UnpublishFences: true}, policy{}, ledger.FieldUnpublishFences,
			func(p policy) any { return p.UnpublishFences }, true, false},
		"fencedCondition": {policy{FencedCondition: "Cut"}, policy{}, ledger.FieldFencedCondition,
			func(p policy) any { return p.FencedCondition }, "Cut", ""},
		"slots.max": {policy{MaxSlots: &most}, policy{MaxSlots: &few}, 0,
			func(p policy) any { return *p.MaxSlots }, most, most},
		"slots.headroom": {policy{Headroom: 2}, policy{Headroom: 1}, 0,
			func(p policy) any { return p.Headroom }, int32(2), int32(2)},
		"workers": {policy{Workers: 5}, policy{Workers: 1}, 0,
			func(p policy) any { return p.Workers }, 5, 5},
		"attachFor": {policy{AttachFor: 1}, policy{}, ledger.FieldOperations,
			func(p policy) any { return p.AttachFor }, ledger.Operations(1), ledger.Operations(0)},
		"detachFor, where the driver has attachFor": {policy{AttachFor: 1}, policy{DetachFor: 1}, 0,
			func(p policy) any { return [2]ledger.Operations{p.AttachFor, p.DetachFor} }, [2]ledger.Operations{0, 1}, [2]ledger.Operations{0, 1}},
		"networkFence": {policy{NetworkFence: ledger.NetworkFence{Class: "all"}}, policy{NetworkFence: ledger.NetworkFence{Class: "one"}}, 0,
			func(p policy) any { return p.NetworkFence.Class }, "all", "all"},
	} {
		for says, want := range map[ledger.PolicyFields]any{0: test.absent, test.says: test.set} {
			l := ledger.New()
			test.driver.Name, test.driver.Driver = "all", "disk"
			test.class.Name, test.class.Driver, test.class.Class, test.class.Says = "class", "disk", "fast", says
			l.Apply(time.Unix(1, 0), test.driver)
			l.Apply(time.Unix(1, 0), test.class)
			if got := test.get(rules.PolicyFor(l.Snapshot(), "disk", "fast")); got != want {
				t.Errorf("%s, with %b said: %v, want %v", name, says, got, want)
			}
			if got := rules.PolicyFor(l.Snapshot(), "disk", "other"); !reflect.DeepEqual(got, test.driver) {
				t.Errorf("%s: of another class %+v", name, got)
			}
		}
	}
}

func TestPolicyOfClassInheritsEverything(t *testing.T) {
	var full ledger.Policy
	value := reflect.ValueOf(&full).Elem()
	for i := range value.NumField() {
		switch f := value.Field(i); f.Kind() {
		case reflect.String:
			f.SetString("disk")
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Pointer:
			f.Set(reflect.New(f.Type().Elem()))
		case reflect.Uint8, reflect.Uint16:
			f.SetUint(1<<f.Type().Bits() - 1)
		case reflect.Struct:
			f.Set(reflect.ValueOf(ledger.NetworkFence{Class: "class", After: new(time.Minute)}))
		default:
			f.SetInt(7)
		}
	}
	full.Class = ""
	l := ledger.New()
	l.Apply(time.Unix(1, 0), full)
	l.Apply(time.Unix(1, 0), ledger.Policy{Name: "class", Driver: "disk", Class: "fast"})
	want := full
	want.Name, want.Version, want.Created, want.Class = "class", "", 0, "fast"
	if got := rules.PolicyFor(l.Snapshot(), "disk", "fast"); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}
