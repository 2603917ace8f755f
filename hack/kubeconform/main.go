// SPDX-License-Identifier: Apache-2.0

// Command kubeconform checks that releases of Kubernetes take manifests: every kind, field
// and value is in the API that each of them publishes.
//
//	go run . --releases 1.34.4,1.37.1 FOLDER
//
// It is kubeconform, with schemas made from the file api/openapi-spec/swagger.json of the module
// k8s.io/kubernetes of that release, so that only the module proxy is asked. Objects of a foreign
// CustomResourceDefinition are counted, and not checked.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yannh/kubeconform/pkg/validator"
)

func main() {
	releases := flag.String("releases", "", "the `releases` of Kubernetes, such as 1.34.4,1.37.1")
	flag.Parse()
	if *releases == "" || flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	for release := range strings.SplitSeq(*releases, ",") {
		if err := check(release, flag.Arg(0)); err != nil {
			fmt.Fprintf(os.Stderr, "Kubernetes %s: %v\n", release, err)
			os.Exit(1)
		}
	}
}

func check(release, folder string) error {
	schemas, err := os.MkdirTemp("", "kubeconform")
	if err != nil {
		return err
	}
	defer os.RemoveAll(schemas)
	if err := writeSchemas(release, schemas); err != nil {
		return err
	}
	v, err := validator.New([]string{schemas + "/{{ .ResourceKind }}{{ .KindSuffix }}.json"}, validator.Opts{Strict: true, IgnoreMissingSchemas: true})
	if err != nil {
		return err
	}
	var found tally
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		for _, result := range v.Validate(path, file) { // closes file
			found.add(result)
		}
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Printf("Kubernetes %s: %d objects are taken; %d are of kinds of others\n", release, found.valid, found.foreign)
	if found == (tally{}) {
		return fmt.Errorf("%s has no manifest", folder)
	}
	return found.wrong
}

type tally struct {
	valid, foreign int
	wrong          error
}

func (t *tally) add(result validator.Result) {
	object, err := result.Resource.Signature()
	switch {
	case result.Status == validator.Empty:
	case result.Status == validator.Valid:
		t.valid++
	case err == nil && result.Status == validator.Skipped && ofOthers(object.Version):
		t.foreign++
	case err == nil && result.Status == validator.Skipped:
		t.wrong = errors.Join(t.wrong, fmt.Errorf("%s: %s %s (%s) is not served", result.Resource.Path, object.Kind, object.Name, object.Version))
	default:
		t.wrong = errors.Join(t.wrong, fmt.Errorf("%s: %w", result.Resource.Path, errors.Join(result.Err, err)))
	}
}

// API groups outside Kubernetes in the chart.
var othersGroups = []string{"cert-manager.io", "monitoring.coreos.com", "moorage.dev"}

func ofOthers(apiVersion string) bool {
	group, _, _ := strings.Cut(apiVersion, "/")
	return slices.Contains(othersGroups, group)
}
