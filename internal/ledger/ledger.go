// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"sync"
	"time"
)

// Ledger takes facts in. Safe for parallel use; readers use snapshots.
type Ledger struct {
	mu    sync.Mutex
	gen   uint64
	facts facts
	reads bool // see NewReader
	// buried are UIDs of deleted tickets until the deletion is seen: earlier events do not revive them.
	buried map[TicketID]string
	// refusals are the input of RefusalsOver.
	refusals []refusal
	// touched saves Apply an allocation.
	touched   Touched
	gathering []*Changes
	// shown is the last snapshot; nil after a change.
	shown *facts
}

type facts struct {
	epoch    time.Time // zero of durations, by the caller's clock
	complete time.Time // zero: not yet, see Complete
	// noForceOnTimeout: see NoForceOnTimeout.
	noForceOnTimeout bool
	// doubtsCutOff: see CutOffBelieved.
	doubtsCutOff         bool
	token, epochOfTokens int64 // see Snapshot.Token
	// dropsHoldBoots: see HoldBoots.
	dropsHoldBoots bool

	volumes     trie[VolumeID, Volume]
	nodes       trie[NodeName, Node]
	pods        trie[string, Pod]
	listed      trie[string, listed] // of pods in holds
	alone       trie[VolumeID, mountedAlone]
	claims      trie[ClaimKey, claimRecord]
	pvs         trie[string, pvRecord]
	classes     trie[string, StorageClass]
	drivers     trie[string, Driver]
	csi         trie[string, string]           // see learnDriver
	attachments trie[string, attachmentRecord] // marked: under way
	unmatched   trie[driverNode, unmatched]
	tickets     trie[TicketID, Ticket]
	policies    trie[string, Policy]
	rules       trie[policyKey, Policy] // policies that count
	zones       trie[Zone, ZoneNodes]

	unread []NodeName // with unread records; replaced, never changed
}

// NewReader returns a ledger for a process that writes no VolumeHolds, like a scheduler. It forgets a
// deleted VolumeHold: the controller rewrites true content.
func NewReader() *Ledger {
	l := New()
	l.reads = true
	return l
}

// New returns a ledger for a controller. It keeps deleted VolumeHolds' facts.
func New() *Ledger {
	one := func(s string) uint64 { return hashStrings(s, "") }
	attachments := &hashing[string, attachmentRecord]{hash: hashName, rehash: (*attachmentRecord).hash, is: (*attachmentRecord).named, marks: (*attachmentRecord).underWay}
	return &Ledger{gen: 1, buried: map[TicketID]string{}, facts: facts{
		volumes:     newTrie(func(v VolumeID) uint64 { return hashStrings(v.Handle, v.Driver) }, func(v *Volume) VolumeID { return v.ID }),
		nodes:       newTrie(func(n NodeName) uint64 { return one(string(n)) }, func(n *Node) NodeName { return n.Name }),
		pods:        newTrie(one, func(p *Pod) string { return p.UID }),
		listed:      newTrie(one, func(p *listed) string { return p.pod }),
		alone:       newTrie(func(v VolumeID) uint64 { return hashStrings(v.Handle, v.Driver) }, func(a *mountedAlone) VolumeID { return a.volume }),
		claims:      newTrie(func(c ClaimKey) uint64 { return hashStrings(c.Name, c.Namespace) }, func(c *claimRecord) ClaimKey { return c.Key }),
		pvs:         newTrie(one, func(p *pvRecord) string { return p.Name }),
		classes:     newTrie(one, func(c *StorageClass) string { return c.Name }),
		drivers:     newTrie(one, func(d *Driver) string { return d.Name }),
		csi:         newTrie(one, func(name *string) string { return *name }),
		attachments: trie[string, attachmentRecord]{how: attachments},
		unmatched:   newTrie(func(d driverNode) uint64 { return hashStrings(d.driver, string(d.node)) }, func(u *unmatched) driverNode { return u.at }),
		tickets:     newTrie(func(t TicketID) uint64 { return hashStrings(t.Name, t.Namespace) }, func(t *Ticket) TicketID { return t.ID }),
		policies:    newTrie(one, func(p *Policy) string { return p.Name }),
		rules:       newTrie(func(k policyKey) uint64 { return hashStrings(k.Class, k.Driver) }, (*Policy).key),
		zones:       newTrie(func(z Zone) uint64 { return hashStrings(z.Name, z.Region) }, func(z *ZoneNodes) Zone { return z.Zone }),
	}}
}

// Apply takes an event in and returns the touched keys. It is idempotent, and ignores outdated objects. now
// is the caller's clock for durations.
func (l *Ledger) Apply(now time.Time, e Event) Touched {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begin(now)
	e.apply(l, now, &l.touched)
	t := l.touched
	l.touched = Touched{}
	l.gather(t)
	return t
}

// begin sets the epoch at the first change.
func (l *Ledger) begin(now time.Time) {
	l.shown = nil
	if l.facts.epoch.IsZero() {
		l.facts.epoch = now
	}
}

// Snapshot takes constant time.
func (l *Ledger) Snapshot() Snapshot {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.snapshot()
}

// snapshot needs mu held.
func (l *Ledger) snapshot() Snapshot {
	if l.shown == nil {
		l.gen++
		shown := l.facts
		l.shown = &shown
	}
	return Snapshot{facts: l.shown}
}
