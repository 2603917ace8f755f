// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/utils/clock"
)

// Lifetimes of answers, and a question's limit. A withdrawn right ends within a minute.
const (
	YesFor        = time.Minute
	NoFor         = 10 * time.Second
	reviewTimeout = 2 * time.Second
)

// mostAnswers bounds the kept answers of a kind.
const mostAnswers = 1000

// allAuthenticated is the group of all known users.
const allAuthenticated = "system:authenticated"

// Reviews asks for users' rights. Safe for parallel use.
type Reviews struct {
	client authorizationclient.SubjectAccessReviewInterface
	known  *cache.LRUExpireCache // bool by question
}

// NewReviews returns Reviews that forget answers by the clock.
func NewReviews(client authorizationclient.SubjectAccessReviewInterface, now clock.PassiveClock) *Reviews {
	return &Reviews{client: client, known: cache.NewLRUExpireCacheWithClock(mostAnswers, now)}
}

// May says whether the API server permits an authenticated user's request. An error means no answer.
func (r *Reviews) May(ctx context.Context, question authorizationv1.SubjectAccessReviewSpec) (bool, error) {
	if !slices.Contains(question.Groups, allAuthenticated) {
		question.Groups = append(slices.Clone(question.Groups), allAuthenticated)
	}
	key, err := json.Marshal(question)
	if err != nil {
		return false, fmt.Errorf("word the question what %q may do: %w", question.User, err)
	}
	if known, found := r.known.Get(string(key)); found {
		return known.(bool), nil
	}
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	review, err := r.client.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: question}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("ask the API server what %q may do: %w", question.User, err)
	}
	r.known.Add(string(key), review.Status.Allowed, counts(review.Status.Allowed))
	return review.Status.Allowed, nil
}

func counts(yes bool) time.Duration {
	if yes {
		return YesFor
	}
	return NoFor
}

// Tokens identifies the users of bearer tokens. Safe for parallel use.
type Tokens struct {
	client authenticationclient.TokenReviewInterface
	known  *cache.LRUExpireCache // *authenticationv1.UserInfo by the token's digest, nil for an unknown token
}

// NewTokens returns Tokens that forget answers by the clock.
func NewTokens(client authenticationclient.TokenReviewInterface, now clock.PassiveClock) *Tokens {
	return &Tokens{client: client, known: cache.NewLRUExpireCacheWithClock(mostAnswers, now)}
}

// Who returns a token's user; nil: unknown token. An error means no answer.
func (t *Tokens) Who(ctx context.Context, token string) (*authenticationv1.UserInfo, error) {
	key := sha256.Sum256([]byte(token))
	if known, found := t.known.Get(key); found {
		return known.(*authenticationv1.UserInfo), nil
	}
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	review, err := t.client.Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("ask the API server whose token it is: %w", err)
	}
	var user *authenticationv1.UserInfo
	if review.Status.Authenticated {
		user = &review.Status.User
	}
	t.known.Add(key, user, counts(user != nil))
	return user, nil
}
