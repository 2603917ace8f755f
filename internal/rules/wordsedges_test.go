// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"strings"
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func TestWordsByTheFieldsOfAReason(t *testing.T) {
	who := ledger.Requester{Ticket: true, Namespace: "shop", Name: "m", UID: "m"}
	hidden := ledger.Requester{Ticket: true, UID: "m"}
	for name, test := range map[string]struct {
		r         Reason
		says, not string // if set, these words are absent
	}{
		"outranked":                     {Reason{Code: Outranked, Node: "well"}, "volume data goes to well first", "is to be detached"},
		"outranked, to be detached":     {Reason{Code: Outranked, Node: ledger.Detached}, "volume data is to be detached first", "goes to"},
		"a claim, not found":            {Reason{Code: ClaimMissing}, "claim data not found", "exists"},
		"a claim of another":            {Reason{Code: ClaimMissing, Detail: notTheirs}, "has another owner than the pod", "not found"},
		"a claim made again":            {Reason{Code: ClaimMissing, Detail: madeAgain}, "was deleted and made again", "not found"},
		"fenced":                        {Reason{Code: NodeFenced, Node: "well"}, "could be taken from well at any time", "NetworkFence"},
		"cut off":                       {Reason{Code: NodeFenced, Node: "well", Driver: "d"}, "the storage of d has cut node well off", "at any time"},
		"held":                          {Reason{Code: HeldElsewhere, Node: "well"}, "well holds it", "promised"},
		"promised":                      {Reason{Code: HeldElsewhere, Node: "well", Detail: onlyPromised}, "it is promised to well", "holds it"},
		"kept detached":                 {Reason{Code: StaysDetached, Who: who}, "is to stay detached for ticket shop/m: no node", "("},
		"kept detached, and why":        {Reason{Code: StaysDetached, Who: who, Detail: "Salvage"}, "is to stay detached for ticket shop/m (Salvage): no node", "somebody"},
		"kept detached, of others":      {Reason{Code: StaysDetached, Who: hidden, Detail: "Salvage"}, "for somebody of another namespace: no node", "Salvage"},
		"not granted":                   {Reason{Code: NotGranted}, "volume data is not granted yet", "known"},
		"a grant is under way":          {Reason{Code: NotGranted, Who: who}, "not known yet whether volume data was granted to ticket shop/m", "is not granted"},
		"not known, a second is left":   {Reason{Code: InUseUnknown, Detail: "why", Seconds: 1}, "why. " + forcedIn + "1s; at once when", "It is known when"},
		"not known, and why":            {Reason{Code: InUseUnknown, Detail: "why"}, "why. It is known when", forcedIn},
		"not known, nothing is said":    {Reason{Code: InUseUnknown, Node: "well"}, "has not reported since the node object was made", "It is known"},
		"no node":                       {Reason{Code: NoNode}, "no node is ready and takes pods", "nearest"},
		"no node, and what is lacking":  {Reason{Code: NoNode, Node: "well", Detail: "why"}, "At well, which comes nearest: why", "is ready"},
		"staged":                        {Reason{Code: StagedAtNode, Node: "well"}, "It goes once it is unmounted there", ";"},
		"staged, by an old word":        {Reason{Code: StagedAtNode, Node: "well", Detail: "why"}, "once it is unmounted there; why", "has called"},
		"too few slots in all":          {Reason{Code: SlotsNotKept, Node: "well", Driver: "d", Needed: 3, Limit: 2}, "needs 3 slots of driver d, and well has 2 in all", "comes first"},
		"slots are kept for another":    {Reason{Code: SlotsNotKept, Volume: disk, Node: "well", Driver: "d", Limit: 2}, "volume data waits for a slot at well, which comes first", "in all"},
		"the driver has no room":        {Reason{Code: NodeExhausted, Driver: "d"}, "it answered ResourceExhausted", ": "},
		"it has none, in its own words": {Reason{Code: NodeExhausted, Driver: "d", Detail: "quota"}, "no room for another volume: quota", "it answered"},
	} {
		test.r.Claim = "data"
		text := test.r.Message()
		if !strings.Contains(text, test.says) {
			t.Errorf("%s: it does not say %q: %s", name, test.says, text)
		}
		if strings.Contains(text, test.not) {
			t.Errorf("%s: it says %q: %s", name, test.not, text)
		}
	}
}

// By two looks of moorage-node, or by the deletion of its VolumeAttachment.
func TestWaysToKnowByTheDetail(t *testing.T) {
	iscsi := ledger.VolumeID{Driver: "kubernetes.io/iscsi", Handle: "h"}
	for name, test := range map[string]struct {
		r                        Reason
		boots, looks, attachment bool
	}{
		"it may have been forgotten":  {Reason{Detail: forgetful, Volume: disk}, true, false, true},
		"forgotten, and nobody looks": {Reason{Detail: forgetfulUnseen, Volume: disk}, true, true, true},
		"forgotten, and left there":   {Reason{Detail: forgetfulLeft, Volume: disk}, true, false, false},
		"it was taken by force":       {Reason{Detail: forgetfulTaken, Volume: disk}, true, false, false},
		"of iSCSI":                    {Reason{Detail: forgetful, Volume: iscsi}, true, false, false},
		"forgotten, not attached":     {Reason{Detail: forgetful + unattached, Volume: disk}, true, false, false},
		"at the machine before":       {Reason{Detail: formerMachine, Volume: disk}, true, false, true},
		"there, not attached":         {Reason{Detail: formerMachine + unattached, Volume: disk}, true, false, false},
		"at one of several":           {Reason{Detail: severalMachines, Volume: disk}, false, false, true},
		"there, and not attached":     {Reason{Detail: severalMachines + unattached, Volume: disk}, false, false, false},
		"there, of iSCSI":             {Reason{Detail: severalMachines, Volume: iscsi}, false, false, false},
		"of iSCSI, and nobody looks":  {Reason{Detail: forgetfulUnseen, Volume: iscsi}, true, false, false},
		"the word is required":        {Reason{Detail: unsaid, Volume: disk}, false, false, false},
		"it can't be given":           {Reason{Detail: unread, Volume: disk}, false, false, false},
	} {
		text := test.r.waysToKnow()
		for words, want := range map[string]bool{
			"the machine is rebooted": test.boots, "moorage-node there has looked twice": test.looks, "deletes its VolumeAttachment": test.attachment,
			"node.kubernetes.io/out-of-service": true, "moorage-node there has looked, or": test.r.Detail == unsaid,
			"its NodeMountReport has as unknown": test.r.Detail == unread,
		} {
			if got := strings.Contains(text, words); got != want {
				t.Errorf("%s: that it says %q is %t: %s", name, words, got, text)
			}
		}
	}
}

func TestViolationsInWords(t *testing.T) {
	for want, v := range map[string]Violation{
		"I1: d^h: why":         {Invariant: "I1", Volume: disk, Message: "why"},
		"I5: d^h at well: why": {Invariant: "I5", Volume: disk, Node: "well", Message: "why"},
	} {
		if got := v.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
