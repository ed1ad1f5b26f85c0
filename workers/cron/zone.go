package cron

import (
	"fmt"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // a static binary in an empty image has no zone files of its own
)

// maxZoneName bounds the length of a zone name; the longest in the IANA
// database has 32 bytes.
const maxZoneName = 64

// zones keeps the loaded locations by name. Only names that exist are kept, so
// that it stays small.
var zones sync.Map

// LoadZone returns the IANA time zone with the given name, such as
// "Europe/Berlin" or "UTC". It refuses what time.LoadLocation would take as the
// machine's own zone ("" and "Local"), and the leap-second copies.
//
// It reads a file for a name of at most 64 bytes that it has not seen; longer names
// are not looked at.
func LoadZone(name string) (*time.Location, error) {
	if loc, ok := zones.Load(name); ok {
		return loc.(*time.Location), nil
	}
	if !zoneNameOK(name) {
		return nil, fmt.Errorf("%q is not an IANA time zone name", clip(name))
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("%q is not a known IANA time zone", name)
	}
	zones.Store(name, loc)
	return loc, nil
}

func zoneNameOK(name string) bool {
	if name == "" || len(name) > maxZoneName || name == "Local" || name == "localtime" || name == "posixrules" {
		return false
	}
	return !strings.HasPrefix(name, "right/") && !strings.HasPrefix(name, "posix/") && !strings.ContainsAny(name, " .\\\x00")
}
