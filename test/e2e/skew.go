// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/moorage-dev/moorage/test/sandbox"
)

// skew guards that Moorage finds out by itself what an older release does not serve.
func skew() []sandbox.Scenario {
	var all []sandbox.Scenario
	for _, release := range sandbox.EmulatedReleases() {
		for _, s := range []sandbox.Scenario{path(), rollout(), limit(), handover(), noRoom(), beside(path()), extended(rollout())} {
			all = append(all, emulating(release, s))
		}
	}
	return all
}

func emulating(release string, s sandbox.Scenario) sandbox.Scenario {
	story, _, _ := strings.Cut(s.Doc, " Upstream:")
	s.Name += "-" + strings.ReplaceAll(release, ".", "-")
	s.Doc = "Kubernetes emulates " + release + ". " + story
	s.Modes = s.Modes[:1]
	shape := s.Shape
	s.Shape = func(to *sandbox.Shape) {
		if shape != nil {
			shape(to)
		}
		to.Kubernetes = release
	}
	return s
}

func (s *story) release() string {
	var release string
	s.until("the API server answers", func() error {
		served, err := s.Client.Discovery().ServerVersion()
		if err == nil {
			release = served.GitVersion
		}
		return err
	})
	return release
}

// A server of 1.34 drops the code of an attacher's error while its gate MutableCSINodeAllocatableCount is
// off (pkg/registry/storage/volumeattachment), the default until 1.35.
func (s *story) keepsErrorCodes() bool {
	return version.MustParseSemantic(s.release()).AtLeast(version.MajorMinor(1, 35))
}
