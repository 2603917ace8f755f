// SPDX-License-Identifier: Apache-2.0

package diskapi

import "time"

type Rule string

// The package documentation of the judge says when each rule applies.
const (
	TwoNodes              Rule = "two-nodes"
	OverLimit             Rule = "over-limit"
	UnpublishWhileStaged  Rule = "unpublish-while-staged"
	StageBeforePublish    Rule = "stage-before-publish"
	WrongNode             Rule = "wrong-node"
	StagedAtTwo           Rule = "staged-at-two"
	PublishContext        Rule = "publish-context"
	PublishBeforeStage    Rule = "publish-before-stage"
	UnstageWhilePublished Rule = "unstage-while-published"
	TwoPods               Rule = "two-pods"
	DeleteWhileAttached   Rule = "delete-while-attached"
	FencedNode            Rule = "fenced-node"
	LetInMounted          Rule = "let-in-mounted"
	WrittenByTwo          Rule = "written-by-two"
	WriteLost             Rule = "write-lost"
	TornOperation         Rule = "torn-operation"
	Leftover              Rule = "leftover"
)

// Attempt is the outcome of a call that broke a rule. Every outcome is a violation: the caller must not
// even try.
type Attempt string

const (
	Pending        Attempt = "pending"
	AttemptRefused Attempt = "refused"
	Happened       Attempt = "happened"
	// InDoubt: the call ended otherwise; it may have taken effect.
	InDoubt Attempt = "in-doubt"
)

type Violation struct {
	Seq     uint64    `json:"seq"`
	Time    time.Time `json:"time"`
	Rule    Rule      `json:"rule"`
	Call    Call      `json:"call"`
	Volume  string    `json:"volume,omitempty"`
	Node    string    `json:"node,omitempty"`
	Attempt Attempt   `json:"attempt"`
	Message string    `json:"message"`
}

func Rules() []Rule {
	return []Rule{
		TwoNodes, OverLimit, UnpublishWhileStaged, StageBeforePublish, WrongNode, StagedAtTwo, PublishContext,
		PublishBeforeStage, UnstageWhilePublished, TwoPods, DeleteWhileAttached, FencedNode, LetInMounted,
		WrittenByTwo, WriteLost, TornOperation, Leftover,
	}
}
