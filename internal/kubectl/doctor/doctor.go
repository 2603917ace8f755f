// SPDX-License-Identifier: Apache-2.0

// Package doctor is kubectl moorage doctor: it checks the setup of Moorage and its surroundings. Each check
// is a pure function of the Evidence. It writes nothing; --probe creates a pod as a dry run.
//
// An unreadable object is a finding of its own, and never makes a check pass.
package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/kubectl/cluster"
	"github.com/moorage-dev/moorage/internal/kubectl/command"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
	"github.com/moorage-dev/moorage/internal/kubectl/screen"
)

type options struct {
	failOn string
	probe  bool
	all    bool
}

// NewCommand makes the command.
func NewCommand(b *command.Base) *cobra.Command {
	output := screen.NewOutput(false)
	var o options
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check whether Moorage, and what it depends on, is set up correctly",
		Long: "Check whether Moorage, and what it depends on, is set up correctly. Each finding has its evidence, and what to do.\n\n" +
			"✗ does not work, or may do harm; ! works, and not as well as it could; ? could not be checked; · worth knowing; ✓ as it should be (with --all).\n\n" +
			"Exit code: 0 when nothing is as bad as --fail-on, 2 when something is, 1 when the cluster could not be examined.\n\nChecks: " + strings.Join(checkNames(), ", ") + ".",
		Example: "  # What is wrong?\n  kubectl moorage doctor\n\n  # In CI: fail on warnings, too\n  kubectl moorage doctor --fail-on warning -o json",
		Args:    cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			limit, err := o.limit()
			if err != nil {
				return err
			}
			if err := output.Validate(); err != nil {
				return err
			}
			c, err := b.Connect()
			if err != nil {
				return err
			}
			report, err := Examine(cmd.Context(), c, o.probe)
			if err != nil {
				return err
			}
			if output.Structured() {
				err = output.Print(b.Streams.Out, b.Style(), "DoctorReport", report)
			} else {
				err = screen.Findings(b.Streams.Out, b.Style(), findings(report), o.all)
			}
			if err != nil {
				return err
			}
			if report.Worst.rank() >= limit {
				return &command.ExitError{Code: command.ExitFindings}
			}
			return nil
		},
	}
	output.AddFlags(cmd)
	cmd.Flags().StringVar(&o.failOn, "fail-on", "error", "Exit with code 2 on findings of this severity or worse: error, warning, unknown or never")
	cmd.Flags().BoolVar(&o.probe, "probe", true, "Create a pod as a dry run in a namespace that opted in, to have the webhook called, if you may")
	cmd.Flags().BoolVar(&o.all, "all", false, "Also show what is as it should be")
	return cmd
}

// Examine makes every check; probe also creates a pod as a dry run, if allowed. An error means that the
// cluster could not be examined.
func Examine(ctx context.Context, c *cluster.Cluster, probe bool) (Report, error) {
	e, err := gather(ctx, c, probe)
	if err != nil {
		return Report{}, err
	}
	return examine(e), nil
}

func (o options) limit() (int, error) {
	if above := slices.Index([]string{"unknown", "warning", "error", "never"}, strings.ToLower(o.failOn)); above >= 0 {
		return Unknown.rank() + above, nil
	}
	return 0, fmt.Errorf("--fail-on %q is not known: choose error, warning, unknown or never", o.failOn)
}

func findings(r Report) []screen.Finding {
	var list []screen.Finding
	for _, f := range r.Findings {
		list = append(list, screen.Finding{
			Sign: map[Severity]string{OK: "✓", Info: "·", Unknown: "?", Warning: "!", Error: "✗"}[f.Severity],
			Good: f.Severity == OK, Bad: f.Severity == Error, Check: f.Check, Message: f.Message, Evidence: f.Evidence, Fix: f.Fix,
		})
	}
	return list
}

// check returns nothing when it does not apply.
type check struct {
	name string
	find func(*Evidence) []Finding
	// world: it depends on the ledger's objects; if some are missing, a good answer means nothing.
	world bool
}

// checks are in a reader's order: is Moorage there, does it run, does it work well?
func checks() []check {
	return []check{
		{name: "incidents", find: checkIncidents, world: true},
		{name: "api", find: checkAPI},
		{name: "rights", find: checkRights},
		{name: "controller", find: checkController},
		{name: "mode", find: checkMode},
		{name: "webhook", find: checkWebhook},
		{name: "certificate", find: checkCertificate},
		{name: "probe", find: checkProbe},
		{name: "scheduler", find: checkScheduler},
		{name: "opted-in", find: checkOptedIn, world: true},
		{name: "policies", find: checkPolicies},
		{name: "kubelets", find: checkKubelets},
		{name: "taints", find: checkTaints, world: true},
		{name: "attach-policies", find: checkAttachPolicies, world: true},
		{name: "fencing", find: checkFencing, world: true},
		{name: "slots", find: checkSlots, world: true},
		{name: "attachers", find: checkAttachers, world: true},
		{name: "node-mount-reports", find: checkNodeMountReports, world: true},
		{name: "waits", find: checkWaits, world: true},
		{name: "invariants", find: checkInvariants, world: true},
	}
}

// absent: only what an uninstall keeps is there, the CRDs and Leases. A leftover webhook or policy does not
// count as absent: a check has to name it.
func (e *Evidence) absent() bool {
	missing := 0
	for _, u := range e.World.Unseen {
		if u.Missing && slices.Contains(facts.OwnResources(), u.Resource) {
			missing++
		}
	}
	left := slices.ContainsFunc(e.Webhooks.Items, func(w admissionv1.MutatingWebhookConfiguration) bool { return strings.HasPrefix(w.Name, "moorage") }) ||
		slices.ContainsFunc(e.Policies.Items, func(p admissionv1.ValidatingAdmissionPolicy) bool { return strings.HasPrefix(p.Name, "moorage") }) ||
		e.binding(guardPolicy) != nil
	uninstalled := e.RoleBinds.Err == nil && !slices.ContainsFunc([]string{v1alpha1.ControllerName, v1alpha1.SchedulerName}, func(name string) bool {
		l := e.lease(name)
		bound := slices.ContainsFunc(e.RoleBinds.Items, func(b rbacv1.ClusterRoleBinding) bool { return b.Name == name })
		return bound || l == nil || e.lapsed(l) == 0
	})
	return (missing == len(facts.OwnResources()) || uninstalled) && !left
}

func examine(e *Evidence) Report {
	if e.absent() {
		fix := "Install it: docs/operate/quickstart.md. explain, volumes, nodes, top and drain-plan work without it."
		if e.World.Served() {
			fix = "Its CRDs are left. To remove them, see docs/operate/upgrade.md."
		}
		f := found(Info, "no webhook or policy of its is seen", fix,
			"Moorage is not installed in this cluster; what follows is what it would change here")
		f.Check = "api"
		return newReport(slices.Concat(ask(e, checks()[:1]), []Finding{f}, ask(e, stockChecks())))
	}
	return newReport(ask(e, checks()))
}

func ask(e *Evidence, list []check) []Finding {
	var findings []Finding
	partial := slices.ContainsFunc(e.World.Unseen, func(u facts.Unseen) bool { return !u.Missing || !e.absent() })
	for _, c := range list {
		for _, f := range c.find(e) {
			f.Check = c.name
			if f.Severity == OK && c.world && partial {
				f = Finding{Check: c.name, Severity: Unknown, Message: "nothing bad is seen, in what may be seen"}
			}
			findings = append(findings, f)
		}
	}
	return findings
}

func checkNames() []string {
	var names []string
	for _, c := range checks() {
		names = append(names, c.name)
	}
	return slices.Clip(names)
}

// Severity is a finding's weight.
type Severity string

const (
	OK      Severity = "OK"
	Info    Severity = "Info"    // nothing to do
	Unknown Severity = "Unknown" // unchecked
	Warning Severity = "Warning" // works, but could be better
	Error   Severity = "Error"   // broken, or may do harm
)

func (s Severity) rank() int { return slices.Index([]Severity{OK, Info, Unknown, Warning, Error}, s) }

// Finding is a check's result.
type Finding struct {
	Check    string   `json:"check"`
	Severity Severity `json:"severity"`
	Message  string   `json:"message"`
	Evidence string   `json:"evidence,omitempty"`
	Fix      string   `json:"fix,omitempty"`
}

// Report is doctor's output.
type Report struct {
	Findings []Finding `json:"findings"`
	Worst    Severity  `json:"worst"`
}

// newReport puts the worst first; equals keep their order.
func newReport(findings []Finding) Report {
	r := Report{Findings: findings, Worst: OK}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return b.Severity.rank() - a.Severity.rank() })
	if len(findings) > 0 {
		r.Worst = r.Findings[0].Severity
	}
	return r
}

func ok(format string, args ...any) Finding {
	return Finding{Severity: OK, Message: fmt.Sprintf(format, args...)}
}

func found(s Severity, evidence, fix, format string, args ...any) Finding {
	return Finding{Severity: s, Message: fmt.Sprintf(format, args...), Evidence: evidence, Fix: fix}
}

func unchecked(what string, err error) []Finding {
	return []Finding{found(Unknown, cluster.Refused(err), "Run doctor with the right to read "+what+", or check it by hand.", "%s could not be read", what)}
}
