// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

// The plugins that count slots: Moorage's, and the one whose place it takes.
const (
	ourPlugin   = "VolumeHold"
	limitPlugin = "NodeVolumeLimits"
)

// schedulerConfig is what matters of a KubeSchedulerConfiguration.
type schedulerConfig struct {
	Kind     string    `json:"kind"`
	Profiles []profile `json:"profiles"`
}

type profile struct {
	SchedulerName string               `json:"schedulerName"`
	Plugins       map[string]pluginSet `json:"plugins"` // by extension point
}

type pluginSet struct {
	Enabled  []plugin `json:"enabled"`
	Disabled []plugin `json:"disabled"`
}

type plugin struct {
	Name string `json:"name"`
}

// enables says whether a profile has a plugin that no profile has by default.
func (p profile) enables(name string) bool {
	for _, set := range p.Plugins {
		if slices.Contains(set.Enabled, plugin{name}) {
			return true
		}
	}
	return false
}

// keeps says whether a profile still has a plugin that every profile has by
// default: it is disabled by its name or by *, at its point or at all, unless it
// is enabled again there.
func (p profile) keeps(name, point string) bool {
	for _, at := range []string{point, "multiPoint"} {
		set := p.Plugins[at]
		if slices.Contains(set.Enabled, plugin{name}) {
			return true
		}
		if slices.Contains(set.Disabled, plugin{name}) || slices.Contains(set.Disabled, plugin{"*"}) {
			return false
		}
	}
	return true
}

// bindsFirst says whether a plugin is the first to bind: only those that the bind
// point itself names come before DefaultBinder.
func (p profile) bindsFirst(name string) bool {
	named := p.Plugins["bind"].Enabled
	return len(named) > 0 && named[0].Name == name
}

func checkScheduler(e *Evidence) []Finding {
	list := e.checkLeader(v1alpha1.SchedulerName, "Pods that opted in wait.")
	if e.Configs.Err != nil {
		return append(list, unchecked("configmaps", e.Configs.Err)...)
	}
	seen := false
	for _, config := range e.Configs.Items {
		for _, key := range sortedKeys(config.Data) {
			var parsed schedulerConfig
			if err := yaml.Unmarshal([]byte(config.Data[key]), &parsed); err != nil || parsed.Kind != "KubeSchedulerConfiguration" {
				continue // of another kind
			}
			for _, p := range parsed.Profiles {
				if p.SchedulerName == v1alpha1.SchedulerName {
					seen = true
					where := fmt.Sprintf("ConfigMap %s/%s, %s", config.Namespace, config.Name, key)
					list = append(list, checkProfile(p, where))
				}
			}
		}
	}
	if l := e.lease(v1alpha1.SchedulerName); !seen && len(e.Configs.Items) == 0 && l != nil && e.lapsed(l) == 0 {
		return append(list, found(Info, "no ConfigMap is labelled app.kubernetes.io/part-of=moorage", "",
			"the scheduler runs with a configuration that is not in the cluster, as the sandbox's does: it does not start with a profile that lacks VolumeHold"))
	}
	if !seen {
		list = append(list, found(Unknown, "no ConfigMap labelled app.kubernetes.io/part-of=moorage has a KubeSchedulerConfiguration with it",
			"If the scheduler is configured elsewhere, see that its profile has VolumeHold in place of NodeVolumeLimits.", "the profile %s was not found", v1alpha1.SchedulerName))
	}
	return list
}

// checkProfile looks at the profile of pods that opted in.
func checkProfile(p profile, where string) Finding {
	switch {
	case !p.enables(ourPlugin):
		return found(Error, where, "Enable VolumeHold under plugins.multiPoint.", "the profile %s does not have the plugin VolumeHold", p.SchedulerName)
	case !p.bindsFirst(ourPlugin):
		return found(Error, where, "Name VolumeHold first under plugins.bind.enabled of the profile, as the chart does.",
			"the profile %s does not have VolumeHold as its first Bind plugin, and moorage-scheduler does not start with it", p.SchedulerName)
	case p.keeps(limitPlugin, "filter"):
		return found(Warning, where, "Disable NodeVolumeLimits in the profile: VolumeHold counts slots itself.",
			"the profile has NodeVolumeLimits beside VolumeHold, which counts a pod's own attachment twice and refuses it its own full node")
	}
	return Finding{Severity: OK, Message: "the profile has VolumeHold in place of NodeVolumeLimits, and first to bind", Evidence: where}
}
