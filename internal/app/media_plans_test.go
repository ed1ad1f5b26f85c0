package app

import (
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

// A new version holds for the product's next look, which is at most a second later.
func TestMediaLimitsAreThoseOfTheConfigurationInForce(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	store, clock := config.Store{DB: pool}, time.Unix(1e9, 0)
	source := mediaPlans{&config.Current{Store: store, Now: func() time.Time { return clock }}}
	if l := source.Of("free"); l.ConcurrentStreams != 1 || l.StorageBytes != 5<<30 {
		t.Errorf("before there is a version: %+v", l)
	}
	d, err := config.Default()
	if err != nil {
		t.Fatal(err)
	}
	for streams := range 3 {
		d.Plans = append(d.Plans[:4:4], config.Plan{Name: "hd", Media: &config.Media{Streams: streams + 2, Storage: 7}})
		if _, err := store.Put(t.Context(), d, "test", "", config.Any); err != nil {
			t.Fatal(err)
		}
		clock = clock.Add(time.Second)
		if l := source.Of("hd"); l.ConcurrentStreams != streams+2 || l.StorageBytes != 7 || l.FileBytes != 0 {
			t.Errorf("%+v", l)
		}
	}
}
