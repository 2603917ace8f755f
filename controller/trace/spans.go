// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// scope names the library that spans are made by.
const scope = "github.com/moorage-dev/moorage/controller/trace"

// end makes the trace of a pod that runs since now.
func (p *path) end(provider *sdk.TracerProvider, now time.Time) {
	tracer := provider.Tracer(scope)
	ctx, root := tracer.Start(withSpan(context.Background(), p.uid, "pod"), "pod "+p.namespace+"/"+p.name, trace.WithTimestamp(p.created), trace.WithAttributes(
		attribute.String("k8s.namespace.name", p.namespace),
		attribute.String("k8s.pod.name", p.name),
		attribute.String("k8s.pod.uid", p.uid),
		attribute.String("k8s.node.name", string(p.node)),
		attribute.Bool("moorage.partial", p.late),
	))
	span := func(name, of string, from, to time.Time, about ...attribute.KeyValue) {
		if from.IsZero() || to.IsZero() || to.Before(from) {
			return // it was not seen
		}
		_, s := tracer.Start(withSpan(ctx, p.uid, name+of), name, trace.WithTimestamp(from), trace.WithAttributes(about...))
		s.End(trace.WithTimestamp(to))
	}
	event := func(name string, at time.Time) {
		if !at.IsZero() {
			root.AddEvent(name, trace.WithTimestamp(at))
		}
	}
	event("admitted", p.created)
	event("reserved", p.reserved)
	event("granted", p.granted)
	span("filter", "", p.created, p.reserved)
	span("grant", "", p.reserved, p.granted)
	span("bind", "", p.granted, p.bound)
	for i := range p.volumes {
		p.volumes[i].spans(span)
	}
	span("mount", "", p.mountable(), now)
	root.End(trace.WithTimestamp(now))
}

// spans makes those of one volume; none for one that was there before its pod.
func (p *volumePath) spans(span func(name, of string, from, to time.Time, about ...attribute.KeyValue)) {
	if p.there {
		return
	}
	about := []attribute.KeyValue{
		attribute.String("moorage.claim", p.name),
		attribute.String("moorage.driver", p.driver),
		attribute.String("k8s.persistentvolume.name", p.persistentVolume),
	}
	span("detach", p.name, p.leaving, p.left, append(about, attribute.String("moorage.from", string(p.from)))...)
	span("attach", p.name, p.asked, p.attached, about...)
	span("report", p.name, p.attached, p.reported, about...)
}

// TraceID is that of a pod: its UID, or, where that is no UUID, a digest of it.
func TraceID(uid string) trace.TraceID {
	var id trace.TraceID
	raw, err := hex.DecodeString(strings.ReplaceAll(uid, "-", ""))
	if err != nil || len(raw) != len(id) {
		sum := sha256.Sum256([]byte(uid))
		raw = sum[:len(id)]
	}
	copy(id[:], raw)
	return id
}

// spanOf says in a context which span of which pod is started.
type spanOf struct{}

type spanName struct{ uid, name string }

func withSpan(ctx context.Context, uid, name string) context.Context {
	return context.WithValue(ctx, spanOf{}, spanName{uid, name})
}

// derivedIDs makes IDs of a pod's UID and a span's name: a trace that is sent twice, as by
// two leaders, is the same trace.
type derivedIDs struct{}

// NewIDs implements sdk.IDGenerator.
func (d derivedIDs) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	of, _ := ctx.Value(spanOf{}).(spanName)
	id := TraceID(of.uid)
	return id, d.NewSpanID(ctx, id)
}

// NewSpanID implements sdk.IDGenerator.
func (derivedIDs) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	of, _ := ctx.Value(spanOf{}).(spanName)
	sum := sha256.Sum256([]byte(of.uid + "/" + of.name))
	var id trace.SpanID
	copy(id[:], sum[:])
	return id
}
