// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"
)

// document is the used part of SPDX 2.3.
type document struct {
	Version      string         `json:"spdxVersion"`
	License      string         `json:"dataLicense"`
	ID           string         `json:"SPDXID"`
	Name         string         `json:"name"`
	Namespace    string         `json:"documentNamespace"`
	Creation     creation       `json:"creationInfo"`
	Packages     []spdxPackage  `json:"packages"`
	Relationship []relationship `json:"relationships"`
}

type creation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type spdxPackage struct {
	ID        string      `json:"SPDXID"`
	Name      string      `json:"name"`
	Version   string      `json:"versionInfo"`
	Location  string      `json:"downloadLocation"`
	Analyzed  bool        `json:"filesAnalyzed"`
	License   string      `json:"licenseConcluded"`
	Declared  string      `json:"licenseDeclared"`
	Copyright string      `json:"copyrightText"`
	Checksums []checksum  `json:"checksums,omitempty"`
	Refs      []reference `json:"externalRefs,omitempty"`
}

type checksum struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"checksumValue"`
}

type reference struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type relationship struct {
	Element string `json:"spdxElementId"`
	Type    string `json:"relationshipType"`
	Related string `json:"relatedSpdxElement"`
}

const unsaid = "NOASSERTION"

// describe reads the Go linker's record in a binary.
func describe(binary, name, version string) ([]byte, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	sum := fmt.Sprintf("%x", sha256.Sum256(raw))
	out := document{
		Version: "SPDX-2.3", License: "CC0-1.0", ID: "SPDXRef-DOCUMENT", Name: name,
		Namespace: "https://github.com/moorage-dev/moorage/spdx/" + name + "-" + sum,
		Creation:  creation{Created: epoch().Format(time.RFC3339), Creators: []string{"Tool: moorage-hack-release", "Organization: The Moorage authors"}},
		Packages: []spdxPackage{{
			ID: "SPDXRef-binary", Name: name, Version: version, Location: unsaid, License: "Apache-2.0", Declared: "Apache-2.0", Copyright: unsaid,
			Checksums: []checksum{{"SHA256", sum}},
		}},
		Relationship: []relationship{{"SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-binary"}},
	}
	modules := append([]*debug.Module{{Path: "stdlib", Version: strings.TrimPrefix(info.GoVersion, "go")}}, info.Deps...)
	for i, module := range modules {
		if module.Replace != nil {
			module = module.Replace
		}
		id := fmt.Sprintf("SPDXRef-module-%d", i)
		out.Packages = append(out.Packages, spdxPackage{
			ID: id, Name: module.Path, Version: module.Version, Location: unsaid, License: unsaid, Declared: unsaid, Copyright: unsaid,
			Refs: []reference{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + module.Path + "@" + module.Version}},
		})
		out.Relationship = append(out.Relationship, relationship{"SPDXRef-binary", "DEPENDS_ON", id})
	}
	return json.MarshalIndent(out, "", "  ")
}
