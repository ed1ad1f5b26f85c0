// Package chart lays out the dashboard's drawings: it turns numbers and times into
// shapes in a box of 100 by 100, which a template writes as SVG. It knows no
// colours and no HTML.
package chart

import (
	"math"
	"time"
)

// Series is one part of the stacks of a bar chart.
type Series struct {
	Name   string
	Class  string // how it is drawn, a name of the style sheet
	Values []int64
}

// Bar is a rectangle, in hundredths of the box; Y counts from the top.
type Bar struct {
	X, Y, Width, Height float64
	Class               string
}

// Column is the strip of the box that stands for one time, from its bottom to its top: what
// is pointed at when somebody asks for the values of that time.
type Column struct {
	X, Width float64
	At       time.Time
	Text     string // what is said of it
}

// Row is what the chart says at one time, for those who read and do not look.
type Row struct {
	At     time.Time
	Values []int64
}

// Chart is a bar chart over time.
type Chart struct {
	Bars    []Bar
	Columns []Column
	Series  []Series // from the bottom of the stacks to their top
	Rows    []Row
	Top     int64 // what the upper edge stands for
	Total   int64 // of all values
	// Limit is a value to compare with, and LimitY where its line is; LimitY is
	// negative when there is none, or it is out of sight.
	Limit            int64
	LimitY           float64
	From, Middle, To time.Time
}

// Stack lays out series as stacks, one for each time. A limit above 0 is drawn as
// a line if it is not so high that the bars would vanish below it. Values without
// a time are left out.
func Stack(times []time.Time, series []Series, limit int64) Chart {
	c := Chart{Series: series, Limit: limit, LimitY: -1}
	if len(times) == 0 {
		return c
	}
	c.From, c.Middle, c.To = times[0], times[len(times)/2], times[len(times)-1]
	highest := c.sum(times)
	if limit > 0 && limit <= 4*max(highest, 1) {
		highest = max(highest, limit)
	}
	c.Top = nice(highest)
	step := 100 / float64(len(times))
	for i, row := range c.Rows {
		c.Columns = append(c.Columns, Column{X: float64(i) * step, Width: step, At: row.At})
		y := 100.0
		for s, v := range row.Values {
			height := 100 * float64(v) / float64(c.Top)
			if y -= height; height > 0 {
				c.Bars = append(c.Bars, Bar{float64(i)*step + step*0.1, y, step * 0.8, height, series[s].Class})
			}
		}
	}
	if limit > 0 && limit <= c.Top {
		c.LimitY = 100 - 100*float64(limit)/float64(c.Top)
	}
	return c
}

// sum makes the rows and the total, and returns the highest stack.
func (c *Chart) sum(times []time.Time) (highest int64) {
	for i, at := range times {
		row, stack := Row{At: at}, int64(0)
		for _, s := range c.Series {
			var v int64
			if i < len(s.Values) {
				v = max(s.Values[i], 0)
			}
			row.Values = append(row.Values, v)
			stack += v
		}
		c.Rows = append(c.Rows, row)
		c.Total += stack
		highest = max(highest, stack)
	}
	return highest
}

// Say has each time say of its values what text does.
func (c *Chart) Say(text func(Row) string) {
	for i := range c.Columns {
		c.Columns[i].Text = text(c.Rows[i])
	}
}

// nice is the least of 1, 2, 4, 5, 6, 8 and 10 times a power of ten that is not below v.
func nice(v int64) int64 {
	if v <= 4 {
		return 4
	}
	unit := int64(math.Pow10(int(math.Log10(float64(v)))))
	for _, f := range []int64{1, 2, 4, 5, 6, 8} {
		if f*unit >= v {
			return f * unit
		}
	}
	return 10 * unit
}

// Marks returns where times lie between from and to, in hundredths. Others are
// left out.
func Marks(times []time.Time, from, to time.Time) []float64 {
	var list []float64
	for _, t := range times {
		if !t.Before(from) && t.Before(to) {
			list = append(list, 100*float64(t.Sub(from))/float64(to.Sub(from)))
		}
	}
	return list
}

// Share is how much of whole part is, in hundredths and at most 100.
func Share(part, whole int64) float64 {
	if whole <= 0 || part <= 0 {
		return 0
	}
	return min(100, 100*float64(part)/float64(whole))
}
