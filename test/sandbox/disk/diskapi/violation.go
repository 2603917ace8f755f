// SPDX-License-Identifier: Apache-2.0

package diskapi

import "time"

// Rule names what a violation breaks.
type Rule string

// The rules of the judge. Its package documentation says when each applies.
const (
	// TwoNodes: ControllerPublish of an exclusive volume that may still be at
	// another node.
	TwoNodes Rule = "two-nodes"
	// OverLimit: ControllerPublish to a node that has no slot left.
	OverLimit Rule = "over-limit"
	// UnpublishWhileStaged: ControllerUnpublish while the node has the volume
	// staged or published, or NodeStage while a ControllerUnpublish is going on.
	UnpublishWhileStaged Rule = "unpublish-while-staged"
	// StageBeforePublish: NodeStage before a ControllerPublish to this node
	// was answered with success.
	StageBeforePublish Rule = "stage-before-publish"
	// WrongNode: NodeStage at a node while the volume is at another one.
	WrongNode Rule = "wrong-node"
	// StagedAtTwo: NodeStage of an exclusive volume that another node still has staged
	// or published, though it is not attached there any more.
	StagedAtTwo Rule = "staged-at-two"
	// PublishContext: NodeStage or NodePublish with another publish context
	// than the last ControllerPublish answered.
	PublishContext Rule = "publish-context"
	// PublishBeforeStage: NodePublish before NodeStage was answered with success.
	PublishBeforeStage Rule = "publish-before-stage"
	// UnstageWhilePublished: NodeUnstage while a pod has the volume.
	UnstageWhilePublished Rule = "unstage-while-published"
	// TwoPods: NodePublish of a single-writer volume at a second target.
	TwoPods Rule = "two-pods"
	// DeleteWhileAttached: DeleteVolume while the volume may be at a node.
	DeleteWhileAttached Rule = "delete-while-attached"
	// FencedNode: a call from a node that was declared dead.
	FencedNode Rule = "fenced-node"
	// LetInMounted: UnfenceClusterNetwork lets in a node that still has a volume staged or
	// published which was detached from it, or which is at another node.
	LetInMounted Rule = "let-in-mounted"
	// WrittenByTwo: a write to an exclusive volume that another node can write to as well, or
	// has written to since the writer has mounted it.
	WrittenByTwo Rule = "written-by-two"
	// WriteLost: a write that its pod was told of is lost: the volume is detached from a
	// machine that has it in its memory, or the next writer does not find it on the disk.
	WriteLost Rule = "write-lost"
	// TornOperation: a detach takes effect while the storage copies or expands the volume and
	// needs it attached for that.
	TornOperation Rule = "torn-operation"
	// Leftover: something attached, staged or published at the end of the run.
	Leftover Rule = "leftover"
)

// Attempt is the outcome of a call that broke a rule. A violation counts with any outcome: the caller
// must not even try.
type Attempt string

// The attempts.
const (
	// Pending: the call has not returned yet.
	Pending Attempt = "pending"
	// AttemptRefused: the service turned the call down.
	AttemptRefused Attempt = "refused"
	// Happened: the call was answered with success.
	Happened Attempt = "happened"
	// InDoubt: the call ended otherwise; it may have taken effect.
	InDoubt Attempt = "in-doubt"
)

// Violation is a broken rule.
type Violation struct {
	// Seq is the log entry that shows it.
	Seq     uint64    `json:"seq"`
	Time    time.Time `json:"time"`
	Rule    Rule      `json:"rule"`
	Call    Call      `json:"call"`
	Volume  string    `json:"volume,omitempty"`
	Node    string    `json:"node,omitempty"`
	Attempt Attempt   `json:"attempt"`
	Message string    `json:"message"`
}

// Rules lists every rule.
func Rules() []Rule {
	return []Rule{
		TwoNodes, OverLimit, UnpublishWhileStaged, StageBeforePublish, WrongNode, StagedAtTwo, PublishContext,
		PublishBeforeStage, UnstageWhilePublished, TwoPods, DeleteWhileAttached, FencedNode, LetInMounted,
		WrittenByTwo, WriteLost, TornOperation, Leftover,
	}
}
