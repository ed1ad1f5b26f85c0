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

// engineLicence is that of MediaMTX, the media engine.
const engineLicence = "MIT"

// writeBOM writes the bill of materials of a binary, the modules that the linker has
// noted in it and the Go that built it, and of the images, which have downloads and the media
// engine beside it; engine is the engine's file for an architecture.
func writeBOM(binary, version string, engine func(arch string) string, out string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return fmt.Errorf("read what %s is made of: %w", binary, err)
	}
	bom := billOf(info, version)
	for _, arch := range platforms {
		if err := addEngine(bom, arch, engine(arch)); err != nil {
			return err
		}
	}
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	defer f.Close()
	return cdx.NewBOMEncoder(f, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
}

// billOf has no time and no serial number, so that it is the same for the same
// binary.
func billOf(info *debug.BuildInfo, version string) *cdx.BOM {
	bom := cdx.NewBOM()
	self := cdx.Component{BOMRef: "sluice", Type: cdx.ComponentTypeApplication, Name: info.Main.Path, Version: version, PackageURL: "pkg:golang/" + info.Main.Path + "@" + version}
	bom.Metadata = &cdx.Metadata{Component: &self}
	bom.SerialNumber = ""
	all := []cdx.Component{{BOMRef: "go", Type: cdx.ComponentTypePlatform, Name: "go", Version: info.GoVersion}}
	modules, refs := modulesOf(info, "")
	all = append(all, modules...)
	for _, arch := range platforms {
		all = append(all, downloads(arch)...)
	}
	below := append([]string{"go"}, refs...)
	bom.Components, bom.Dependencies = &all, &[]cdx.Dependency{{Ref: "sluice", Dependencies: &below}}
	return bom
}

// modulesOf are those that a program is made of, and what the bill calls them: by their
// addresses, behind of.
func modulesOf(info *debug.BuildInfo, of string) (list []cdx.Component, refs []string) {
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		url := "pkg:golang/" + m.Path + "@" + m.Version
		c := cdx.Component{BOMRef: of + url, Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: url}
		if m.Sum != "" {
			c.Properties = &[]cdx.Property{{Name: "go.sum", Value: m.Sum}}
		}
		list, refs = append(list, c), append(refs, c.BOMRef)
	}
	return list, refs
}

// addEngine adds the media engine for an architecture, by the bytes that were built, and
// what it is made of.
func addEngine(bom *cdx.BOM, arch, file string) error {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read what the media engine for %s is made of: %w", arch, err)
	}
	sum, err := sumOf(file)
	if err != nil {
		return err
	}
	ref := arch + " " + info.Main.Path
	modules, below := modulesOf(info, ref+" ")
	*bom.Components = append(*bom.Components, cdx.Component{BOMRef: ref, Type: cdx.ComponentTypeApplication, Name: info.Main.Path, Version: info.Main.Version,
		PackageURL: "pkg:golang/" + info.Main.Path + "@" + info.Main.Version, Description: "in the images for linux/" + arch,
		Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: sum}}, Licenses: &cdx.Licenses{{License: &cdx.License{ID: engineLicence}}}})
	*bom.Components = append(*bom.Components, modules...)
	*bom.Dependencies = append(*bom.Dependencies, cdx.Dependency{Ref: ref, Dependencies: &below})
	return nil
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
