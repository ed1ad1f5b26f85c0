package pgserver

import (
	"os/exec"
	"regexp"
	"strconv"
)

var versionPattern = regexp.MustCompile(`\(PostgreSQL\) (\d+)`)

// askVersion runs `postgres --version`; 0 if the answer is none.
func askVersion(postgres string) int {
	out, err := exec.Command(postgres, "--version").Output()
	if err != nil {
		return 0
	}
	return parseVersion(string(out))
}

// parseVersion reads the major version from "postgres (PostgreSQL) 15.18 (…)".
func parseVersion(text string) int {
	m := versionPattern.FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1])
	return n
}
