// SPDX-License-Identifier: Apache-2.0

package main

import (
	"log/slog"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

const (
	chart   = "../../charts/moorage/files/alerts.yaml"
	publish = `csi_sidecar_operations_seconds_count{driver_name="d", method_name="/csi.v1.Controller/ControllerPublishVolume", grpc_status_code=`
)

// The series cover an hour, as promtool writes them.
func situations() map[string]struct{ fires, silent []string } {
	return map[string]struct{ fires, silent []string }{
		"MoorageControllerAbsent": {[]string{`moorage_volumes 1x60`}, []string{`moorage_build_info{version="1"} 1x60`}},
		"MoorageNobodyLeads":      {[]string{`moorage_leading{pod="a"} 0x60`, `moorage_leading{pod="b"} 0x60`}, []string{`moorage_leading{pod="a"} 0x60`, `moorage_leading{pod="b"} 1x60`}},
		// API servers end each watch now and then.
		"MoorageWatchBroken": {[]string{`moorage_watch_streams{pod="a", resource="pods"} 1x50 0x9`, `moorage_watch_streams{pod="b", resource="pods"} 1x60`},
			[]string{`moorage_watch_streams{pod="a", resource="pods"} 1x56 0x2 1`}},
		// The hour is the first of the epoch: one waits since its tenth minute, one since its fiftieth.
		"MooragePodStuck": {[]string{`moorage_pods_waiting_oldest_timestamp_seconds{reason="DetachFailed"} 600x60`}, []string{`moorage_pods_waiting_oldest_timestamp_seconds{reason="DetachFailed"} 3000x60`}},
		"MoorageWebhookUnreachable": {[]string{`apiserver_admission_webhook_fail_open_count{name="pod.moorage.dev", type="admit"} 0x40 0+1x19`},
			[]string{`apiserver_admission_webhook_fail_open_count{name="inject.mesh.example.com", type="admit"} 0+1x60`, `apiserver_admission_webhook_fail_open_count{name="pod.moorage.dev", type="admit"} 7x60`}},
		"MoorageInvariantViolated": {[]string{`moorage_invariant_violations_total{invariant="I1", pod="a"} 0x50 1x9`},
			[]string{`moorage_invariant_violations_total{invariant="I1", pod="a"} 1x60`}},
		"MoorageDefinitionsOutdated": {[]string{`moorage_volumehold_fields_dropped 1x60`}, []string{`moorage_volumehold_fields_dropped 0x60`}},
		"MoorageForcedDetach":        {[]string{`moorage_forced_detaches_total{rule="OutOfService"} 0x50 1x9`}, []string{`moorage_forced_detaches_total{rule="OutOfService"} 3x60`}},
		"MoorageStepsFail": {[]string{`moorage_steps_total{step="report", result="error"} 0+6x60`, `moorage_steps_total{step="report", result="ok"} 0+4x60`},
			[]string{`moorage_steps_total{step="report", result="error"} 0+4x60`, `moorage_steps_total{step="report", result="ok"} 0+6x60`}},
		"MoorageAttachSlow": {[]string{`moorage_operation_seconds_bucket{operation="attach", driver="d", le="100"} 0+1x60`, `moorage_operation_seconds_bucket{operation="attach", driver="d", le="300"} 0+10x60`, `moorage_operation_seconds_bucket{operation="attach", driver="d", le="+Inf"} 0+10x60`},
			[]string{`moorage_operation_seconds_bucket{operation="attach", driver="d", le="100"} 0+10x60`, `moorage_operation_seconds_bucket{operation="attach", driver="d", le="+Inf"} 0+10x60`}},
		"MoorageTicketsWait": {[]string{`moorage_tickets{type="Pod", phase="pending", reason="NoFreeSlot", pod="leader"} 3x60`},
			[]string{`moorage_tickets{type="Pod", phase="granted", reason="Granted"} 3x60`, `moorage_tickets{type="Pod", phase="pending", reason=""} 3x60`}},
		"MoorageSlotsFull": {[]string{`moorage_slots_used{driver="d", node="n1", pod="a"} 10x60`, `moorage_slots_used{driver="d", node="n1", pod="b"} 10x60`, `moorage_slots_limit{driver="d", node="n1", pod="a"} 10x60`},
			// Twice as many by two replicas' count, and one node of two is full.
			[]string{`moorage_slots_used{driver="d", node="n1", pod="a"} 10x60`, `moorage_slots_used{driver="d", node="n1", pod="b"} 10x60`, `moorage_slots_limit{driver="d", node="n1", pod="a"} 10x60`, `moorage_slots_limit{driver="d", node="n2", pod="a"} 10x60`}},
		"MoorageWebhookFails": {[]string{`moorage_webhook_requests_total{path="/mutate/pod", code="500"} 0+1x60`, `moorage_webhook_requests_total{path="/mutate/pod", code="200"} 0+9x60`},
			[]string{`moorage_webhook_requests_total{path="/healthz", code="500"} 0+1x60`, `moorage_webhook_requests_total{path="/mutate/pod", code="200"} 0+9x60`}},
		"MoorageWebhookSlow": {[]string{`moorage_webhook_request_duration_seconds_bucket{path="/mutate/pod", le="1"} 0+1x60`, `moorage_webhook_request_duration_seconds_bucket{path="/mutate/pod", le="4"} 0+9x60`, `moorage_webhook_request_duration_seconds_bucket{path="/mutate/pod", le="+Inf"} 0+9x60`},
			[]string{`moorage_webhook_request_duration_seconds_bucket{path="/mutate/pod", le="1"} 0+9x60`, `moorage_webhook_request_duration_seconds_bucket{path="/mutate/pod", le="+Inf"} 0+9x60`}},
		"MoorageCertificateEnds": {[]string{`moorage_webhook_certificate_expiry_timestamp_seconds 604000x60`}, []string{`moorage_webhook_certificate_expiry_timestamp_seconds 9999999x60`, `moorage_extender_certificate_expiry_timestamp_seconds 9999999x60`}},
		"MoorageSchedulerCertificateEnds": {[]string{`moorage_extender_client_certificate_expiry_timestamp_seconds{client="system:kube-scheduler", pod="a"} 604000x60`},
			// Another replica has seen the renewed one.
			[]string{`moorage_extender_client_certificate_expiry_timestamp_seconds{client="system:kube-scheduler", pod="a"} 604000x60`, `moorage_extender_client_certificate_expiry_timestamp_seconds{client="system:kube-scheduler", pod="b"} 9999999x60`}},
		"MoorageBug":            {[]string{`moorage_extender_panics_total{pod="p"} 0x30 1x29`}, []string{`moorage_webhook_panics_total{pod="p"} 1x60`}},
		"MoorageQueueGrows":     {[]string{`moorage_queue_depth{queue="volumes"} 200x60`}, []string{`moorage_queue_depth{queue="volumes"} 200x55 0 200x4`}},
		"MoorageTruthDiffers":   {[]string{`moorage_truth_differences{code="Unaccounted"} 1x60`}, []string{`moorage_truth_differences{code="Unaccounted"} 1x40 0 1x19`}},
		"MoorageNodeCutOff":     {[]string{`moorage_nodes_cut_off{node="n1", driver="d", pod="a"} 1x60`, `moorage_nodes_cut_off{node="n1", driver="d", pod="b"} 1x60`}, []string{`moorage_nodes_cut_off{node="n1", driver="d", pod="a"} _x20 1x40`}},
		"MoorageUnexplainedUse": {[]string{`moorage_volumes_in_use_unexplained{node="n1", pod="a"} 2x60`}, []string{`moorage_volumes_in_use_unexplained{node="n1", pod="a"} 2x50 0 2x9`}},
		// While a volume is staged or unstaged, a moment of this is no fault.
		"MoorageForgottenStagingPath": {[]string{`moorage_node_forgotten_volumes{node="n1"} 1x60`}, []string{`moorage_node_forgotten_volumes{node="n1"} 1x50 0 1x9`}},
		// A forgotten volume has the alert above. The words of a stopped moorage-node may be old.
		"MoorageMountWithoutPod": {[]string{`moorage_node_volumes_without_pod{node="n1", pod="a"} 2x60`, `moorage_node_forgotten_volumes{node="n1"} 1x60`, `moorage_node_last_look_timestamp_seconds{node="n1"} 0+60x60`},
			[]string{`moorage_node_volumes_without_pod{node="n1", pod="a"} 1x60`, `moorage_node_forgotten_volumes{node="n1"} 1x60`, `moorage_node_last_look_timestamp_seconds{node="n1"} 0+60x60`,
				`moorage_node_volumes_without_pod{node="n2", pod="a"} 1x60`, `moorage_node_forgotten_volumes{node="n2"} 0x60`, `moorage_node_last_look_timestamp_seconds{node="n2"} 60x60`}},
		"MoorageMountedWithoutAttachment": {[]string{`moorage_node_volumes_without_attachment{node="n1", pod="a"} 1x60`, `moorage_node_last_look_timestamp_seconds{node="n1"} 0+60x60`},
			[]string{`moorage_node_volumes_without_attachment{node="n1", pod="a"} 1x57 0 1x2`, `moorage_node_last_look_timestamp_seconds{node="n1"} 0+60x60`,
				`moorage_node_volumes_without_attachment{node="n2", pod="a"} 1x60`, `moorage_node_last_look_timestamp_seconds{node="n2"} 60x60`}},
		"MoorageAttacherCallsFail": {[]string{publish + `"Internal"} 0+6x60`, publish + `"OK"} 0+4x60`},
			[]string{publish + `"Internal"} 0+4x60`, publish + `"OK"} 0+6x60`}},
		"MoorageAttacherTimesOut": {[]string{publish + `"DeadlineExceeded"} 0+1x60`, publish + `"OK"} 0+9x60`},
			[]string{publish + `"Internal"} 0+1x60`, publish + `"OK"} 0+9x60`}},
		"MoorageAttacherWaits":       {[]string{`moorage_attacher_volumes_waiting{driver="d"} 5x60`}, []string{`moorage_attacher_volumes_waiting{driver="d"} 5x50 0 5x9`}},
		"MoorageAttacherUnaccounted": {[]string{`moorage_attacher_unaccounted_publications{driver="d"} 1x60`}, []string{`moorage_attacher_unaccounted_publications{driver="d"} 0x60`}},
	}
}

func TestAlertsFire(t *testing.T) {
	raw, err := os.ReadFile(chart)
	if err != nil {
		t.Fatal(err)
	}
	groups, errs := rulefmt.Parse(raw, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	engine := promql.NewEngine(promql.EngineOpts{Logger: slog.New(slog.DiscardHandler), MaxSamples: 100000, Timeout: time.Minute, Parser: parser.NewParser(parser.Options{})})
	table := situations()
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			situation, ok := table[rule.Alert]
			if !ok {
				t.Errorf("nobody says when %s fires", rule.Alert)
				continue
			}
			delete(table, rule.Alert)
			if !fires(t, engine, rule, situation.fires) {
				t.Errorf("%s does not fire at %q", rule.Alert, situation.fires)
			}
			if fires(t, engine, rule, situation.silent) {
				t.Errorf("%s fires at %q", rule.Alert, situation.silent)
			}
		}
	}
	for alert := range table {
		t.Errorf("there is no alert %s", alert)
	}
}

func fires(t *testing.T, engine *promql.Engine, rule rulefmt.Rule, lines []string) bool {
	t.Helper()
	series := load(t, lines)
	end := time.Unix(0, 0).Add(59 * time.Minute)
	for at := end.Add(-time.Duration(rule.For)); !at.After(end); at = at.Add(time.Minute) {
		if at.Before(time.Unix(0, 0)) {
			continue // for longer than the hour
		}
		query, err := engine.NewInstantQuery(t.Context(), series, nil, rule.Expr, at)
		if err != nil {
			t.Fatalf("%s: %v", rule.Alert, err)
		}
		result := query.Exec(t.Context())
		vector, err := result.Vector()
		if err != nil {
			t.Fatalf("%s: %v", rule.Alert, err)
		}
		holds := len(vector) > 0
		query.Close()
		if !holds {
			return false
		}
	}
	return true
}

type memory []storage.Series

func load(t *testing.T, lines []string) memory {
	t.Helper()
	var out memory
	for _, line := range lines {
		name, values, err := parser.NewParser(parser.Options{}).ParseSeriesDesc(line)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		var samples []chunks.Sample
		for i, value := range values {
			samples = append(samples, sample{int64(i) * time.Minute.Milliseconds(), value.Value})
		}
		out = append(out, storage.NewListSeries(name, samples))
	}
	return out
}

func (m memory) Querier(int64, int64) (storage.Querier, error) {
	return &storage.MockQuerier{SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
		found := &set{at: -1}
		for _, series := range m {
			if !slices.ContainsFunc(matchers, func(matcher *labels.Matcher) bool { return !matcher.Matches(series.Labels().Get(matcher.Name)) }) {
				found.series = append(found.series, series)
			}
		}
		return found
	}}, nil
}

type set struct {
	series []storage.Series
	at     int
}

func (s *set) Next() bool                        { s.at++; return s.at < len(s.series) }
func (s *set) At() storage.Series                { return s.series[s.at] }
func (s *set) Err() error                        { return nil }
func (s *set) Warnings() annotations.Annotations { return nil }

type sample struct {
	milliseconds int64
	value        float64
}

func (s sample) T() int64                      { return s.milliseconds }
func (s sample) ST() int64                     { return 0 }
func (s sample) F() float64                    { return s.value }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }
