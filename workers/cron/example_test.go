package cron_test

import (
	"fmt"
	"time"

	"sluice.dev/sluice/workers/cron"
)

func ExampleParse() {
	s, err := cron.Parse("30 9 * * MON-FRI")
	if err != nil {
		fmt.Println(err)
		return
	}
	friday := time.Date(2026, time.January, 2, 12, 0, 0, 0, time.UTC)
	for _, at := range s.Upcoming(friday, time.UTC, 2) {
		fmt.Println(at.Format("Mon 2006-01-02 15:04"))
	}
	// Output:
	// Mon 2026-01-05 09:30
	// Tue 2026-01-06 09:30
}

func ExampleParse_error() {
	_, err := cron.Parse("0 25 * * *")
	fmt.Println(err)
	_, err = cron.Parse("0 0 30 2 *")
	fmt.Println(err)
	// Output:
	// cron expression, hour: 25 is outside 0–23
	// cron expression: never fires: no month has such a day
}

// A time that a clock change leaves out runs at the first instant after the gap.
func ExampleSchedule_Next() {
	s, err := cron.Parse("30 2 * * *")
	if err != nil {
		fmt.Println(err)
		return
	}
	zone, err := cron.LoadZone("America/New_York")
	if err != nil {
		fmt.Println(err)
		return
	}
	at, _ := s.Next(time.Date(2016, time.March, 12, 12, 0, 0, 0, zone), zone)
	fmt.Println(at.In(zone))
	at, _ = s.Next(at, zone)
	fmt.Println(at.In(zone))
	// Output:
	// 2016-03-13 03:00:00 -0400 EDT
	// 2016-03-14 02:30:00 -0400 EDT
}

// The latest run that was missed while nothing was running.
func ExampleSchedule_Last() {
	s, err := cron.Parse("@hourly")
	if err != nil {
		fmt.Println(err)
		return
	}
	stopped := time.Date(2026, time.January, 1, 8, 10, 0, 0, time.UTC)
	at, ok := s.Last(stopped, stopped.Add(5*time.Hour), time.UTC)
	fmt.Println(at.Format("15:04"), ok)
	// Output: 13:00 true
}
