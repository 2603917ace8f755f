// SPDX-License-Identifier: Apache-2.0

package attacher

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // --logging-format=json
)

type commandLine struct {
	config  Config
	logging *logsapi.LoggingConfiguration
	notes   []string
	version bool
}

func ignoredFlags() map[string]string {
	why := map[string]string{
		"resync":       "an attachment is looked at whenever something about it changes, and against the driver's list",
		"automaxprocs": "the Go runtime keeps to the container's CPU limit by itself",
	}
	for _, name := range []string{ // klog's; external-attacher once had them
		"add_dir_header", "alsologtostderr", "log_backtrace_at", "log_dir", "log_file", "log_file_max_size", "logtostderr",
		"one_output", "skip_headers", "skip_log_headers", "stderrthreshold",
	} {
		why[name] = "logs go to standard error"
	}
	return why
}

// parse works like external-attacher 4.12: the standard flag package, one dash or two.
func parse(args []string, usage io.Writer) (*commandLine, error) {
	line := &commandLine{config: DefaultConfig(), logging: logsapi.NewLoggingConfiguration()}
	flags := flag.NewFlagSet("moorage-attacher", flag.ContinueOnError)
	flags.SetOutput(usage)
	c := &line.config
	flags.BoolVar(&line.version, "version", false, "show the version and exit")
	flags.StringVar(&c.Kubeconfig, "kubeconfig", c.Kubeconfig, "kubeconfig file; without one, the service account of the pod it runs in")
	flags.StringVar(&c.Address, "csi-address", c.Address, "socket of the CSI driver")
	flags.Float64Var(&c.QPS, "kube-api-qps", c.QPS, "requests per second to the API server; 0 leaves that to the API server")
	flags.IntVar(&c.Burst, "kube-api-burst", c.Burst, "requests to the API server in a burst")
	flags.DurationVar(&c.Timeout, "timeout", c.Timeout, "longest time that one call to the driver may take")
	flags.DurationVar(&c.RetryFirst, "retry-interval-start", c.RetryFirst, "wait after the first failure; it doubles with each further one")
	flags.DurationVar(&c.RetryMax, "retry-interval-max", c.RetryMax, "longest wait after a failure")
	flags.IntVar(&c.Workers, "worker-threads", c.Workers, "most calls to the driver at a time; there are fewer while the driver pushes back")
	flags.DurationVar(&c.ReconcileSync, "reconcile-sync", c.ReconcileSync, "time between two comparisons with what the driver lists")
	flags.IntVar(&c.PageSize, "max-entries", c.PageSize, "volumes per page of that list; 0 leaves it to the driver")
	flags.StringVar(&c.DefaultFSType, "default-fstype", c.DefaultFSType, "filesystem type of volumes that name none")
	flags.IntVar(&c.MaxGRPCLog, "max-grpc-log-length", c.MaxGRPCLog, "characters logged of an answer of the driver; not positive for all")
	electionFlags(flags, &c.Election)
	endpoint, metrics := listenFlags(flags, c)
	var gates featureGates
	flags.Var(&gates, "feature-gates", "accepted for external-attacher's sake")
	logsapi.AddGoFlags(line.logging, flags)
	for name, why := range ignoredFlags() {
		flags.Var(ignored(name != "resync"), name, "does nothing: "+why)
	}
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if len(flags.Args()) > 0 {
		return nil, fmt.Errorf("%q is no flag, and there are no other arguments", flags.Arg(0))
	}
	if *endpoint != "" && *metrics != "" {
		return nil, errors.New("--http-endpoint and --metrics-address are one and the same: give one of them")
	}
	c.Listen = *endpoint + *metrics
	line.note(flags, gates)
	return line, c.Validate()
}

func electionFlags(flags *flag.FlagSet, e *Election) {
	flags.BoolVar(&e.Enabled, "leader-election", e.Enabled, "let one of several attachers of the driver work, the others wait")
	flags.StringVar(&e.Namespace, "leader-election-namespace", e.Namespace, "namespace of the Lease; the pod's own if empty")
	flags.DurationVar(&e.LeaseDuration, "leader-election-lease-duration", e.LeaseDuration, "time after which a leader that is not heard of is replaced")
	flags.DurationVar(&e.RenewDeadline, "leader-election-renew-deadline", e.RenewDeadline, "time after which a leader that can't renew its lease gives up")
	flags.DurationVar(&e.RetryPeriod, "leader-election-retry-period", e.RetryPeriod, "time between attempts to get or renew the lease")
	flags.Func("leader-election-labels", "labels of the Lease, as key:value,key:value", func(text string) error {
		e.Labels = map[string]string{}
		for _, item := range strings.Split(text, ",") {
			key, value, ok := strings.Cut(item, ":")
			if !ok || strings.Contains(value, ":") {
				return fmt.Errorf("%q is not of the form key:value", item)
			}
			e.Labels[key] = value
		}
		return nil
	})
}

func listenFlags(flags *flag.FlagSet, c *Config) (endpoint, metrics *string) {
	flags.StringVar(&c.MetricsPath, "metrics-path", c.MetricsPath, "path of the metrics")
	return flags.String("http-endpoint", "", "host:port for metrics and /healthz/leader-election; none when empty"),
		flags.String("metrics-address", "", "older name of --http-endpoint")
}

func (l *commandLine) note(flags *flag.FlagSet, gates featureGates) {
	flags.Visit(func(f *flag.Flag) {
		if why, ok := ignoredFlags()[f.Name]; ok {
			l.notes = append(l.notes, fmt.Sprintf("--%s does nothing here: %s", f.Name, why))
		}
	})
	for _, gate := range gates {
		l.notes = append(l.notes, fmt.Sprintf("--feature-gates=%s does nothing here: what is safe is always on", gate))
	}
}

// ignored is an ineffective flag's value. True: it may stand alone.
type ignored bool

func (ignored) String() string     { return "" }
func (ignored) Set(string) error   { return nil }
func (i ignored) IsBoolFlag() bool { return bool(i) }

type featureGates []string

func (g *featureGates) String() string { return strings.Join(*g, ",") }

func (g *featureGates) Set(text string) error {
	for _, pair := range strings.Split(text, ",") {
		if pair == "" {
			continue
		}
		gate, value, ok := strings.Cut(pair, "=")
		if value = strings.ToLower(value); !ok || gate == "" || value != "true" && value != "false" {
			return fmt.Errorf("%q is not of the form gate=true or gate=false", pair)
		}
		*g = append(*g, pair)
	}
	return nil
}
