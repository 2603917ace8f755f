// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Certificate is what matters of a cert-manager Certificate.
type Certificate struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Status   struct {
		NotAfter    *metav1.Time       `json:"notAfter"`
		RenewalTime *metav1.Time       `json:"renewalTime"`
		Conditions  []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// renewalGrace is how long a renewal may be overdue before it is told:
// cert-manager tries again after an hour at the latest.
const renewalGrace = 2 * time.Hour

// checkRenewal looks at whoever renews the certificates of Moorage's servers:
// cert-manager, or the chart's CronJob. The certificates themselves are in
// Secrets, which doctor has no business to read; cert-manager says when they end.
func checkRenewal(e *Evidence) []Finding {
	if e.Certificates.Err != nil {
		return unchecked("certificates.cert-manager.io", e.Certificates.Err)
	}
	if e.CronJobs.Err != nil {
		return unchecked("cronjobs.batch", e.CronJobs.Err)
	}
	var list []Finding
	for i := range e.Certificates.Items {
		list = append(list, e.certificate(&e.Certificates.Items[i])...)
	}
	for i := range e.CronJobs.Items {
		list = append(list, e.renewer(&e.CronJobs.Items[i])...)
	}
	if len(list) > 0 {
		return list
	}
	if len(e.Certificates.Items)+len(e.CronJobs.Items) == 0 {
		return []Finding{found(Info, "there is no Certificate and no CronJob of the chart's", "", "the webhook's certificate is renewed by hand (webhook.caBundle)")}
	}
	return []Finding{ok("%d certificates are valid and renewed by cert-manager, %d by the chart's CronJob", len(e.Certificates.Items), len(e.CronJobs.Items))}
}

// certificate is what is wrong with a Certificate.
func (e *Evidence) certificate(c *Certificate) []Finding {
	name := c.Metadata.Namespace + "/" + c.Metadata.Name
	why := "the logs of cert-manager, and kubectl -n " + c.Metadata.Namespace + " describe certificate,certificaterequest."
	for _, condition := range c.Status.Conditions {
		if condition.Type == "Ready" && condition.Status != metav1.ConditionTrue {
			return []Finding{found(Error, condition.Reason+": "+condition.Message, "Look at "+why, "certificate %s is not ready", name)}
		}
	}
	switch until := c.Status.NotAfter; {
	case until == nil:
		return []Finding{found(Warning, "its status has no notAfter", "Is cert-manager running? Look at "+why, "certificate %s has not been issued yet", name)}
	case !until.After(e.now()):
		return []Finding{found(Error, "valid until "+until.UTC().Format(time.RFC3339), "Look at "+why, "certificate %s has expired", name)}
	}
	if due := c.Status.RenewalTime; due != nil && e.now().Sub(due.Time) > renewalGrace {
		return []Finding{found(Warning, fmt.Sprintf("due at %s, valid until %s", due.UTC().Format(time.RFC3339), c.Status.NotAfter.UTC().Format(time.RFC3339)),
			"Look at "+why, "certificate %s should have been renewed %s ago", name, e.now().Sub(due.Time).Round(time.Hour))}
	}
	return nil
}

// renewer is what is wrong with the chart's CronJob.
func (e *Evidence) renewer(job *batchv1.CronJob) []Finding {
	name := job.Namespace + "/" + job.Name
	if job.Spec.Suspend != nil && *job.Spec.Suspend {
		return []Finding{found(Warning, "spec.suspend is true", "kubectl -n "+job.Namespace+" patch cronjob "+job.Name+` -p '{"spec":{"suspend":false}}'`,
			"CronJob %s, which renews the webhook's certificate, is suspended", name)}
	}
	last := job.Status.LastScheduleTime
	if last == nil {
		return nil // the release's own Job has made the first certificate
	}
	if done := job.Status.LastSuccessfulTime; (done == nil || done.Before(last)) && e.now().Sub(last.Time) > renewalGrace {
		return []Finding{found(Warning, "last scheduled at "+last.UTC().Format(time.RFC3339)+", and has not succeeded since", "The logs of its last Job: kubectl -n "+job.Namespace+" get jobs.",
			"CronJob %s, which renews the webhook's certificate, fails", name)}
	}
	return nil
}
