// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"k8s.io/klog/v2"
)

// Open returns a Tracer that sends to an OTLP endpoint by gRPC, such as
// http://collector:4317, or appends to a file; nil where neither is named. What can't be
// sent is logged and dropped.
func Open(ctx context.Context, endpoint, file, version string) (*Tracer, error) {
	var client otlptrace.Client
	switch {
	case endpoint != "":
		client = otlptracegrpc.NewClient(otlptracegrpc.WithEndpointURL(endpoint))
	case file != "":
		client = &fileClient{name: file}
	default:
		return nil, nil
	}
	exporter, err := otlptrace.New(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	log := klog.FromContext(ctx)
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Error(err, "Traces were dropped") }))
	return New(sdk.NewBatchSpanProcessor(exporter), version), nil
}

// fileClient appends to a file, a line of OTLP's JSON for each batch, as OpenTelemetry's
// file exporters do and its collectors read.
type fileClient struct {
	name string
	mu   sync.Mutex
	file *os.File
}

// Start implements otlptrace.Client.
func (c *fileClient) Start(context.Context) (err error) {
	c.file, err = os.OpenFile(c.name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	return err
}

// Stop implements otlptrace.Client.
func (c *fileClient) Stop(context.Context) error { return c.file.Close() }

// UploadTraces implements otlptrace.Client.
func (c *fileClient) UploadTraces(_ context.Context, spans []*tracepb.ResourceSpans) error {
	raw, err := protojson.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return err
	}
	var data any
	if err := json.Unmarshal(raw, &data); err != nil {
		return err
	}
	if raw, err = json.Marshal(hexIDs(data)); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err = c.file.Write(append(raw, '\n'))
	return err
}

// hexIDs writes IDs as OTLP's JSON has them, in place: protobuf's JSON has base64.
func hexIDs(value any) any {
	switch v := value.(type) {
	case []any:
		for _, each := range v {
			hexIDs(each)
		}
	case map[string]any:
		for key, below := range v {
			text, ok := below.(string)
			if raw, err := base64.StdEncoding.DecodeString(text); ok && err == nil && (key == "traceId" || key == "spanId" || key == "parentSpanId") {
				v[key] = hex.EncodeToString(raw)
				continue
			}
			hexIDs(below)
		}
	}
	return value
}
