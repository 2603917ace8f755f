// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
)

func moorageComponents(s *site) []component {
	if !s.options.Mode.Moorage() || s.options.Bring != nil {
		return nil
	}
	extra := []string{"--operation-tickets"} // as the chart has it
	if s.options.NetworkFences {
		extra = append(extra, "--network-fences")
	}
	if s.options.RequireReport {
		extra = append(extra, "--require-node-report")
	}
	return []component{
		{
			name:    MoorageWebhook,
			restart: true,
			args: []string{
				"--listen=" + s.webhookAddr,
				"--tls-cert-file=" + s.webhookCert.cert,
				"--tls-private-key-file=" + s.webhookCert.key,
			},
		},
		{
			name:     MoorageController,
			identity: new(serviceAccount(MoorageNamespace, MoorageController)),
			restart:  true,
			args: append(append(extra, s.options.controllerElection()...),
				"--kubeconfig="+s.kubeconfig(MoorageController),
				"--namespace="+MoorageNamespace,
				"--mode="+string(s.options.Mode),
				"--listen="+s.controllerAddr,
				"--write-timeout="+s.options.writeTimeout(),
			),
		},
		moorageScheduler(s),
	}
}

// The time is short, so that a killed controller is soon replaced, but enough for an API server on a busy
// machine.
func (o Options) controllerElection() []string {
	if o.defaultLeases() {
		return []string{"--leader-elect-lease-duration=15s", "--leader-elect-renew-deadline=10s", "--leader-elect-retry-period=2s"}
	}
	return []string{"--leader-elect-lease-duration=8s", "--leader-elect-renew-deadline=6s", "--leader-elect-retry-period=500ms"}
}

func (o Options) defaultLeases() bool { return o.TuneControlPlane || o.DefaultLeases }

// writeTimeout is within what a Lease lasts after the deadline of its renewal.
func (o Options) writeTimeout() string {
	if o.defaultLeases() {
		return "5s"
	}
	return "4s"
}

func moorageScheduler(s *site) component {
	args := []string{"--config=" + s.schedulerConfig, "--secure-port=0"}
	if s.options.Extender {
		args = append(args,
			"--extender-listen="+s.extenderAddr,
			"--extender-tls-cert-file="+s.extenderCert.cert,
			"--extender-tls-private-key-file="+s.extenderCert.key,
			"--extender-client-ca-file="+s.authority.certPath(),
			"--extender-client-names="+schedulerUser,
		)
	}
	return component{
		name:     MoorageScheduler,
		identity: new(serviceAccount(MoorageNamespace, MoorageScheduler)),
		restart:  true,
		args:     args,
	}
}

func (s *site) extendedConfiguration() string {
	return fmt.Sprintf(extendedConfig, s.kubeconfig(Scheduler), s.extenderAddr,
		s.authority.certPath(), s.schedulerCert.cert, s.schedulerCert.key)
}

func (s *site) schedulerConfiguration() string {
	profiles := "- schedulerName: moorage-scheduler"
	switch {
	case s.options.Extender:
		profiles = "- schedulerName: no-pods-scheduler"
	case !s.options.stockScheduler():
		profiles = "- schedulerName: default-scheduler\n" + profiles
	}
	connection, election := s.kubeconfig(MoorageScheduler), [3]string{"5s", "3s", "500ms"}
	if s.options.TuneControlPlane {
		connection += "\n  qps: " + tunedQPS + "\n  burst: " + tunedBurst
	}
	if s.options.defaultLeases() {
		election = [3]string{"15s", "10s", "2s"}
	}
	return fmt.Sprintf(schedulerConfig, election[0], election[1], election[2], connection, profiles)
}

// Profiles of one process share one cache. The lease is short, so that a killed process is soon back.
const schedulerConfig = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: true
  resourceNamespace: moorage-system
  resourceName: moorage-scheduler
  leaseDuration: %s
  renewDeadline: %s
  retryPeriod: %s
clientConnection:
  kubeconfig: %s
profiles:
%s
  plugins:
    multiPoint:
      enabled:
      - name: PromptVolumeBinding
      - name: VolumeHold
      - name: VolumeRestrictions
      - name: VolumeZone
      disabled:
      - name: NodeVolumeLimits
      - name: VolumeBinding
      - name: VolumeRestrictions
      - name: VolumeZone
    bind:
      enabled:
      - name: VolumeHold
`

// The extender takes NodeVolumeLimits' place in every profile, since it is asked about every pod.
const extendedConfig = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: false
clientConnection:
  kubeconfig: %s
profiles:
- schedulerName: default-scheduler
  plugins: &plugins
    multiPoint:
      disabled:
      - name: NodeVolumeLimits
- schedulerName: moorage-scheduler
  plugins: *plugins
extenders:
- urlPrefix: https://%s
  filterVerb: filter
  prioritizeVerb: prioritize
  bindVerb: bind
  preemptVerb: preempt
  weight: 10
  enableHTTPS: true
  nodeCacheCapable: true
  tlsConfig:
    caFile: %s
    certFile: %s
    keyFile: %s
`
