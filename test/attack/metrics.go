// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"context"
	"net/http"
)

// The ports serve metrics only to permitted clients (metrics.secure).
func metrics() []attempt {
	scrape := func(scheme string, token func(*pki) string) try {
		return func(ctx context.Context, s *Scene, _ clients) error {
			return s.everywhere(s.Metrics, func(address string) error {
				c := caller{method: http.MethodGet, url: scheme + "://" + address + "/metrics", token: token(s.keys)}
				return c.send(ctx)
			})
		}
	}
	tenant := outsider()
	tenant.name = "tenant's service account"
	return []attempt{
		{outsider(), "metrics without TLS", byTLS, scrape("http", func(*pki) string { return "" })},
		{outsider(), "metrics without a token", byReview, scrape("https", func(*pki) string { return "" })},
		{outsider(), "metrics with what is no token", byReview, scrape("https", func(*pki) string { return "forged" })},
		{outsider(), "metrics with a token into which the controller's name was written", byReview, scrape("https", func(p *pki) string { return p.altered })},
		{tenant, "metrics with a token for another audience", byReview, scrape("https", func(p *pki) string { return p.addressed })},
		{tenant, "metrics with a token that has expired", byReview, scrape("https", func(p *pki) string { return p.expired })},
		{tenant, "metrics with the token of an account that is gone", byReview, scrape("https", func(p *pki) string { return p.orphaned })},
		{tenant, "metrics without the right", byReview, scrape("https", func(p *pki) string { return p.tenant })},
	}
}
