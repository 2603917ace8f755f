// SPDX-License-Identifier: Apache-2.0

package ledger

// tokensOfATerm limits a term's fencing tokens.
const tokensOfATerm = 1_000_000_000

// firstToken is below the term's tokens and above earlier terms'.
func firstToken(epoch int64) int64 { return min(epoch, MaxTransitions/tokensOfATerm) * tokensOfATerm }

// beginTerm starts a term's tokens above the tokens of all earlier terms.
func (l *Ledger) beginTerm(epoch int64) {
	l.facts.epochOfTokens, l.facts.token = epoch, firstToken(epoch)
}

// seeToken: a number above this term's was edited, and concerns its own volume only.
func (l *Ledger) seeToken(n int64) {
	if n < firstToken(l.facts.epochOfTokens+1) {
		l.facts.token = max(l.facts.token, n)
	}
}

// Token is the term's highest seen fencing token (Hold.Transitions, Attachment.Transitions). The next is
// higher, so that each volume's tokens rise, even of volumes at no node.
func (s Snapshot) Token() int64 { return s.facts.token }
