package main

import (
	"debug/buildinfo"
	"fmt"
	"os"
	"runtime/debug"
	"slices"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"sluice.dev/sluice/deploy/engines"
	"sluice.dev/sluice/dev/fetch"
)

// writeBOM writes the bill of materials of a binary, the modules that the linker has
// noted in it and the Go that built it, and of the images, which have downloads beside it.
func writeBOM(binary, version, out string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return fmt.Errorf("read what %s is made of: %w", binary, err)
	}
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	defer f.Close()
	return cdx.NewBOMEncoder(f, cdx.BOMFileFormatJSON).SetPretty(true).Encode(billOf(info, version))
}

// billOf has no time and no serial number, so that it is the same for the same
// binary.
func billOf(info *debug.BuildInfo, version string) *cdx.BOM {
	bom := cdx.NewBOM()
	self := cdx.Component{BOMRef: "sluice", Type: cdx.ComponentTypeApplication, Name: info.Main.Path, Version: version, PackageURL: "pkg:golang/" + info.Main.Path + "@" + version}
	bom.Metadata = &cdx.Metadata{Component: &self}
	bom.SerialNumber = ""
	all := []cdx.Component{{BOMRef: "go", Type: cdx.ComponentTypePlatform, Name: "go", Version: info.GoVersion}}
	below := []string{"go"}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		ref := "pkg:golang/" + m.Path + "@" + m.Version
		c := cdx.Component{BOMRef: ref, Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: ref}
		if m.Sum != "" {
			c.Properties = &[]cdx.Property{{Name: "go.sum", Value: m.Sum}}
		}
		all, below = append(all, c), append(below, ref)
	}
	for _, arch := range platforms {
		all = append(all, downloads(arch)...)
	}
	bom.Components, bom.Dependencies = &all, &[]cdx.Dependency{{Ref: "sluice", Dependencies: &below}}
	return bom
}

// downloads are what images for an architecture have beside the binary, each by the bytes
// that are pinned.
func downloads(arch string) (list []cdx.Component) {
	files := slices.Concat(fetch.Servers(arch), packages[arch])
	for _, p := range engines.Programs {
		files = append(files, fetch.Of(p, arch)...)
	}
	for _, f := range files {
		c := cdx.Component{BOMRef: arch + " " + f.Name, Type: cdx.ComponentTypeApplication, Name: f.Name, Description: "in the images for linux/" + arch,
			Hashes:             &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: f.SHA256}},
			ExternalReferences: &[]cdx.ExternalReference{{Type: cdx.ERTypeDistribution, URL: f.URL}}}
		if f.Licence != "" {
			c.Licenses = &cdx.Licenses{{License: &cdx.License{ID: f.Licence}}}
		}
		list = append(list, c)
	}
	return list
}
