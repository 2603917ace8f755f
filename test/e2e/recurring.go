// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/moorage-dev/moorage/api/client"
	"github.com/moorage-dev/moorage/api/ticket"
	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/sandbox"
)

// The sandbox's nodes can't run the CronJob's program: the scenario does, with the token of the pod's
// service account.
type recurring struct {
	*story
	name   string
	claims []string
}

func (s *story) recurringSnapshots(name string, claims []string) *recurring {
	s.account(name, []rbacv1.PolicyRule{
		{APIGroups: []string{sandbox.SnapshotResource().Group}, Resources: []string{sandbox.SnapshotResource().Resource}, Verbs: []string{"create"}},
	}, "moorage-tickets", "moorage-view")
	spec := sandbox.PodSpec()
	spec.RestartPolicy, spec.ServiceAccountName = corev1.RestartPolicyNever, name
	_, err := s.Client.BatchV1().CronJobs(s.Namespace).Create(s.ctx, &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batchv1.CronJobSpec{
			Schedule: "* * * * *", ConcurrencyPolicy: batchv1.ForbidConcurrent, Suspend: new(true),
			JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{
				ActiveDeadlineSeconds: new(int64(600)), TTLSecondsAfterFinished: new(int32(1)), Template: corev1.PodTemplateSpec{Spec: spec},
			}},
		},
	}, metav1.CreateOptions{})
	s.must(err)
	return &recurring{s, name, claims}
}

func (r *recurring) byHand(name string) string {
	cron, err := r.Client.BatchV1().CronJobs(r.Namespace).Get(r.ctx, r.name, metav1.GetOptions{})
	r.must(err)
	_, err = r.Client.BatchV1().Jobs(r.Namespace).Create(r.ctx, &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Annotations: map[string]string{"cronjob.kubernetes.io/instantiate": "manual"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(cron, batchv1.SchemeGroupVersion.WithKind("CronJob"))},
		},
		Spec: cron.Spec.JobTemplate.Spec,
	}, metav1.CreateOptions{})
	r.must(err)
	return name
}

func (r *recurring) bySchedule() (job string) {
	r.suspends(false)
	r.until("the schedule has made a Job", func() error {
		for _, p := range r.View.Pods(r.Namespace) {
			if of := p.Labels[batchv1.JobNameLabel]; r.scheduled(of) {
				job = of
				return nil
			}
		}
		return errors.New("there is no pod of one")
	})
	r.suspends(true)
	return job
}

func (r *recurring) scheduled(job string) bool {
	minute, ours := strings.CutPrefix(job, r.name+"-")
	return ours && strings.Trim(minute, "0123456789") == ""
}

func (r *recurring) suspends(is bool) {
	patch := fmt.Sprintf(`{"spec":{"suspend":%t}}`, is)
	_, err := r.Client.BatchV1().CronJobs(r.Namespace).Patch(r.ctx, r.name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	r.must(err)
}

func (r *recurring) isDue(job string) {
	patch := []byte(`{"spec":{"activeDeadlineSeconds":1}}`)
	_, err := r.Client.BatchV1().Jobs(r.Namespace).Patch(r.ctx, job, types.MergePatchType, patch, metav1.PatchOptions{})
	r.must(err)
	r.eventOf("Job", job, "DeadlineExceeded", "")
	r.until("the pod of "+job+" is gone", func() error {
		for _, p := range r.View.Pods(r.Namespace) {
			if p.Labels[batchv1.JobNameLabel] == job {
				return fmt.Errorf("there is %s", p.Name)
			}
		}
		return nil
	})
}

func (r *recurring) ends() {
	r.must(r.Client.BatchV1().CronJobs(r.Namespace).Delete(r.ctx, r.name, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}))
}

type round struct {
	*recurring
	job       string
	pod       *corev1.Pod
	owner     metav1.OwnerReference
	tickets   *ticket.Client
	snapshots dynamic.ResourceInterface
	hangs     bool   // the program asks for no snapshot, and does not end
	forgets   string // the claim with a ticket that the program does not release
	stop      context.CancelFunc
	ended     chan error
}

func (r *recurring) starts(job string, faults round) *round {
	p := &faults
	p.recurring, p.job, p.ended = r, job, make(chan error, 1)
	r.until("the pod of "+job+" runs", func() error {
		for _, pod := range r.View.Pods(r.Namespace) {
			if pod.Labels[batchv1.JobNameLabel] == job && pod.Status.Phase == corev1.PodRunning {
				p.pod = pod
				return nil
			}
		}
		return errors.New("it does not")
	})
	p.owner = *metav1.GetControllerOf(p.pod)
	p.owner.Controller, p.owner.BlockOwnerDeletion = nil, nil
	config := r.as(p.pod.Spec.ServiceAccountName, &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: p.pod.Name, UID: p.pod.UID})
	api, err := client.NewForConfig(config)
	r.must(err)
	p.tickets, err = ticket.New(api, r.name)
	r.must(err)
	dyn, err := dynamic.NewForConfig(config)
	r.must(err)
	p.snapshots = dyn.Resource(sandbox.SnapshotResource()).Namespace(r.Namespace)
	ctx, stop := context.WithCancel(r.ctx)
	p.stop = stop
	go func() { p.ended <- p.run(ctx) }()
	return p
}

// run asks for all volumes at once: Moorage gives turns.
func (p *round) run(ctx context.Context) error {
	all, ctx := errgroup.WithContext(ctx)
	for _, claim := range p.claims {
		all.Go(func() error { return p.snapshot(ctx, claim) })
	}
	return all.Wait()
}

func (p *round) snapshot(ctx context.Context, claim string) error {
	h, err := p.tickets.Acquire(ctx, ticket.Request{
		Namespace: p.Namespace, Name: p.made(claim), Type: v1alpha1.TicketSnapshot, Claims: []string{claim}, Owner: &p.owner,
	})
	if err != nil {
		return err
	}
	defer h.Leave()
	if p.hangs {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	_, err = p.snapshots.Create(ctx, object(sandbox.SnapshotResource(), "VolumeSnapshot", p.made(claim), ofClaim(claim)), metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("snapshot of %s: %w", claim, err)
	}
	work, stop := context.WithCancel(h.Context())
	defer context.AfterFunc(ctx, stop)()
	if err := p.View.Await(work, func() error { return ready(p.View.Snapshot(p.Namespace, p.made(claim))) }); err != nil {
		return fmt.Errorf("snapshot of %s: %w", claim, err)
	}
	if claim == p.forgets {
		return nil
	}
	return h.Release(ctx)
}

func (p *round) made(claim string) string { return p.job + "-" + claim }

func (p *round) ready() (claims []string) {
	for _, claim := range p.claims {
		if ready(p.View.Snapshot(p.Namespace, p.made(claim))) == nil {
			claims = append(claims, claim)
		}
	}
	return claims
}

func (p *round) isOver() {
	p.until("every snapshot of the night is ready", func() error {
		select {
		case err := <-p.ended:
			if err != nil {
				return sandbox.Never("the program says %v", err)
			}
			return nil
		default:
			return fmt.Errorf("%d of %d are", len(p.ready()), len(p.claims))
		}
	})
	p.stop()
	p.must(p.Cluster.Exit(p.ctx, p.pod))
	p.eventOf("Job", p.job, "Completed", "")
}

func (p *round) dies() {
	p.stop()
	<-p.ended
}
