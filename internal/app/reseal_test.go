package app

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/platform/storage/postgres/pgtest"
	"sluice.dev/sluice/platform/storage/reencrypt"
	"sluice.dev/sluice/platform/storage/secretbox"
)

// Every column of which the schema says that it is sealed is sealed anew, and
// there is such a column.
func TestAllThatIsSealedIsSealedAnew(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../migrations/*.up.sql")
	if err != nil {
		t.Fatal(err)
	}
	said := []string{"private_der"} // of 0001, which was sealed later
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(\w+) +bytea[^\n]*-- sealed`).FindAllSubmatch(b, -1) {
			said = append(said, string(m[1]))
		}
	}
	var known []string
	for _, c := range sealedColumns() {
		known = append(known, c.Value)
	}
	slices.Sort(said)
	slices.Sort(known)
	if len(known) < 4 || !slices.Equal(said, known) {
		t.Errorf("the schema says %v, sealed anew are %v", said, known)
	}
	box, err := secretbox.New(strings.Repeat("k", secretbox.MinKey))
	if err != nil {
		t.Fatal(err)
	}
	if list, err := reencrypt.All(t.Context(), pgtest.Pool(t), box, sealedColumns()); err != nil || len(list) != len(known) {
		t.Error(list, err)
	}
}

// The first of several keys seals and derives; none is lost, and none is empty.
func TestListsOfSecrets(t *testing.T) {
	t.Parallel()
	nothing := settings(nil)
	e := nothing.With(map[string]string{"SLUICE_SECRETS_KEY": strings.Repeat("n", 64) + "," + strings.Repeat("o", 64) + ",", "SLUICE_FEED_TOKEN": "next,now"})
	both, err := e.answerSecrets()
	if err != nil || len(both) != 2 || both[0] == both[1] {
		t.Fatal(both, err)
	}
	alone, err := e.With(map[string]string{"SLUICE_SECRETS_KEY": strings.Repeat("o", 64)}).answerSecrets()
	if err != nil || alone[0] != both[1] {
		t.Error("a key means another thing beside others")
	}
	if e.First("SLUICE_FEED_TOKEN") != "next" || e.First("SLUICE_MODEL_UPSTREAM_KEY") != "" {
		t.Error(e.List("SLUICE_FEED_TOKEN"))
	}
	if _, err := nothing.With(map[string]string{"SLUICE_SECRETS_KEY": "short"}).box(); err == nil {
		t.Error("a short key was taken")
	}
}
