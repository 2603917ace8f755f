// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/moorage-dev/moorage/test/sandbox/internal/link"
)

type site struct {
	options Options
	folder  *folder

	logs, nodes, pki, kubeconfigs, tmp string

	etcdAddr, etcdPeerAddr string
	apiAddr, apiPort       string
	diskAddr, csiSocket    string
	webhookAddr            string
	extenderAddr           string
	controllerAddr         string
	nodeIP                 string

	authority            *authority
	apiCert, webhookCert keyPair
	extenderCert         keyPair
	schedulerCert        keyPair // a client's, for the extender
	signingKey           string
	tokenFile            string
	auditPolicy          string
	schedulerConfig      string
	extendedConfig       string // of the stock scheduler that asks Moorage's
	egress               string

	kubeletPorts  map[string]string // of real nodes
	kubeletClient keyPair           // the API server's, for them

	ports ports
	links map[string]*link.Link
}

// The audit log gives "API writes per pod" and denied calls. Leases of nodes and of Kubernetes are left
// out, since they are most of the writes.
const auditRules = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: None
  userGroups: ["system:nodes", "system:serviceaccounts:kube-system", "system:masters"]
  resources:
  - group: coordination.k8s.io
    resources: [leases]
- level: None
  users: ["system:apiserver"]
- level: None
  nonResourceURLs: ["/readyz*", "/livez*", "/healthz*", "/version*", "/openapi*", "/api", "/api/*", "/apis", "/apis/*"]
- level: Metadata
`

// The API server asks a proxy, since nothing listens at Services' addresses.
const egressRules = `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport:
      uds:
        udsName: %q
`

func newSite(o Options, f *folder, now time.Time) (*site, error) {
	s := &site{options: o, folder: f, links: map[string]*link.Link{}}
	for _, step := range []func() error{
		s.makeFolders, s.chooseAddresses, func() error { return s.makeKeys(now) }, func() error { return s.prepareReal(now) }, s.checkComponents, s.writeConfig, s.issueTokens,
	} {
		if err := step(); err != nil {
			s.close()
			return nil, err
		}
	}
	return s, nil
}

func (s *site) makeFolders() error {
	for name, path := range map[string]*string{
		"logs": &s.logs, "nodes": &s.nodes, "pki": &s.pki, "kubeconfigs": &s.kubeconfigs, "tmp": &s.tmp,
	} {
		var err error
		if *path, err = s.folder.mkdir(name); err != nil {
			return err
		}
	}
	for i := range s.options.Nodes {
		if err := os.MkdirAll(filepath.Join(s.nodes, NodeName(i+1), "plugins_registry"), 0o755); err != nil {
			return fmt.Errorf("folder of a node: %w", err)
		}
	}
	s.csiSocket = s.folder.file("csi.sock")
	s.tokenFile = s.folder.file("tokens.csv")
	s.auditPolicy = s.folder.file("audit-policy.yaml")
	s.schedulerConfig = s.folder.file("scheduler-config.yaml")
	s.extendedConfig = s.folder.file("extended-config.yaml")
	s.egress = s.folder.file("egress.yaml")
	s.signingKey = filepath.Join(s.pki, "service-accounts.key")
	return nil
}

func (s *site) chooseAddresses() error {
	for _, addr := range []*string{&s.etcdAddr, &s.etcdPeerAddr, &s.apiAddr, &s.diskAddr, &s.webhookAddr, &s.extenderAddr, &s.controllerAddr} {
		var err error
		if *addr, err = s.ports.next(); err != nil {
			return err
		}
	}
	var err error
	if s.nodeIP, err = hostAddress(); err != nil {
		return err
	}
	s.apiPort, err = portOf(s.apiAddr)
	return err
}

func (s *site) makeKeys(now time.Time) error {
	var err error
	if s.authority, err = newAuthority(s.pki, now); err != nil {
		return err
	}
	if s.apiCert, err = s.authority.serve(APIServer, []string{"kubernetes.default.svc"}, now); err != nil {
		return err
	}
	if s.webhookCert, err = s.authority.serve(MoorageWebhook, []string{MoorageWebhook + "." + MoorageNamespace + ".svc"}, now); err != nil {
		return err
	}
	if s.extenderCert, err = s.authority.serve("moorage-extender", nil, now); err != nil {
		return err
	}
	if s.schedulerCert, err = s.authority.client(Scheduler, schedulerUser, now); err != nil {
		return err
	}
	return newSigningKey(s.signingKey)
}

func (s *site) writeConfig() error {
	for path, content := range map[string]string{
		s.auditPolicy:     auditRules,
		s.schedulerConfig: s.schedulerConfiguration(),
		s.extendedConfig:  s.extendedConfiguration(),
		s.egress:          fmt.Sprintf(egressRules, s.options.ServiceProxy),
	} {
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return fmt.Errorf("configuration of the cluster: %w", err)
		}
	}
	return s.writeReal()
}

func (s *site) issueTokens() error {
	var t tokens
	token, err := t.issue(admin())
	if err != nil {
		return err
	}
	if err := WriteKubeconfig(s.adminKubeconfig(), s.apiURL(), s.authority.PEM, token); err != nil {
		return err
	}
	ids, issued := identities(s.components()), map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(ids)) {
		token, err := t.issue(ids[name])
		if err != nil {
			return err
		}
		if err := s.linkAs(name, token); err != nil {
			return err
		}
		issued[name] = token
	}
	if err := errors.Join(s.linkSeconds(issued), s.linkAgents()); err != nil {
		return err
	}
	return t.write(s.tokenFile)
}

func (s *site) linkAs(name, token string) error {
	l, err := link.Open("127.0.0.1:0", s.apiAddr)
	if err != nil {
		return err
	}
	s.links[name] = l
	return WriteKubeconfig(s.kubeconfig(name), "https://"+l.Addr(), s.authority.PEM, token)
}

func (s *site) components() []component {
	return slices.Concat(machines(s), upstreamComponents(s), moorageComponents(s), agents(s))
}

func (s *site) apiURL() string { return "https://" + s.apiAddr }

func (s *site) adminKubeconfig() string { return s.folder.file("kubeconfig") }

func (s *site) kubeconfig(name string) string { return filepath.Join(s.kubeconfigs, name) }

func (s *site) AuditLog() string { return filepath.Join(s.logs, "audit.log") }

func (s *site) close() {
	for _, l := range s.links {
		_ = l.Close()
	}
	s.ports.close()
}
