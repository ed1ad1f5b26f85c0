package schema

import "strings"

// Formats that are checked. Others say something about a string, and are not.
const (
	FormatDateTime = 1 + iota
	FormatDate
	FormatTime
	FormatUUID
	FormatEmail
	FormatIPv4
	FormatIPv6
	FormatURI
)

// Formats gives the number of each format that is checked, and its name.
var Formats = [...]string{FormatDateTime: "date-time", FormatDate: "date", FormatTime: "time", FormatUUID: "uuid",
	FormatEmail: "email", FormatIPv4: "ipv4", FormatIPv6: "ipv6", FormatURI: "uri"}

// formed reports whether s has a format. It takes time linear in s.
func formed(format uint32, s string) bool {
	switch format {
	case FormatDateTime:
		return len(s) > 11 && isDate(s[:10]) && s[10]|0x20 == 't' && isTime(s[11:])
	case FormatDate:
		return isDate(s)
	case FormatTime:
		return isTime(s)
	case FormatUUID:
		return isUUID(s)
	case FormatEmail:
		return isEmail(s)
	case FormatIPv4:
		return isIPv4(s)
	case FormatIPv6:
		return isIPv6(s)
	case FormatURI:
		return isURI(s)
	}
	return true
}

// number reads n digits at the start of s; below zero: there are none.
func number(s string, n int) int {
	if len(s) < n {
		return -1
	}
	v := 0
	for i := range n {
		if s[i]-'0' > 9 {
			return -1
		}
		v = v*10 + int(s[i]-'0')
	}
	return v
}

// isDate is full-date of RFC 3339.
func isDate(s string) bool {
	if len(s) != 10 || s[4] != '-' || s[7] != '-' {
		return false
	}
	y, m, d := number(s, 4), number(s[5:], 2), number(s[8:], 2)
	if y < 0 || m < 1 || m > 12 || d < 1 {
		return false
	}
	days := 30 + (m+m/8)%2
	if m == 2 {
		days = 28
		if y%4 == 0 && (y%100 != 0 || y%400 == 0) {
			days = 29
		}
	}
	return d <= days
}

// isTime is full-time of RFC 3339, leap seconds included.
func isTime(s string) bool {
	if len(s) < 9 || s[2] != ':' || s[5] != ':' {
		return false
	}
	hour, minute, second := number(s, 2), number(s[3:], 2), number(s[6:], 2)
	if hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60 {
		return false
	}
	s = s[8:]
	if s[0] == '.' {
		n := 1
		for n < len(s) && s[n]-'0' <= 9 {
			n++
		}
		if n == 1 {
			return false
		}
		s = s[n:]
	}
	offset, ok := zone(s)
	utc := (hour*60 + minute - offset + 2*24*60) % (24 * 60)
	return ok && (second < 60 || utc == 24*60-1)
}

// zone reads an offset from UTC, in minutes.
func zone(s string) (minutes int, ok bool) {
	if len(s) == 1 {
		return 0, s[0]|0x20 == 'z'
	}
	if len(s) != 6 || s[0] != '+' && s[0] != '-' || s[3] != ':' {
		return 0, false
	}
	h, m := number(s[1:], 2), number(s[4:], 2)
	if h < 0 || h > 23 || m < 0 || m > 59 {
		return 0, false
	}
	minutes = h*60 + m
	if s[0] == '-' {
		minutes = -minutes
	}
	return minutes, true
}

func hexDigit(c byte) bool { return c-'0' <= 9 || c|0x20 >= 'a' && c|0x20 <= 'f' }

func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if s[i] != '-' {
				return false
			}
		} else if !hexDigit(s[i]) {
			return false
		}
	}
	return true
}

func isIPv4(s string) bool {
	parts := 0
	for {
		part, rest, more := strings.Cut(s, ".")
		v := -1
		if len(part) <= 3 {
			v = number(part, len(part))
		}
		if part == "" || v < 0 || v > 255 || len(part) > 1 && part[0] == '0' {
			return false
		}
		if parts++; !more {
			return parts == 4
		}
		s = rest
	}
}

// isIPv6 is an address of RFC 4291, without a zone.
func isIPv6(s string) bool {
	if len(s) > 45 {
		return false
	}
	groups, gap := 0, false
	if strings.HasPrefix(s, "::") {
		gap, s = true, s[2:]
		if s == "" {
			return true
		}
	}
	for {
		part, rest, more := strings.Cut(s, ":")
		if !more && strings.Contains(part, ".") {
			groups += 2
			return isIPv4(part) && (groups == 8 && !gap || groups < 8 && gap)
		}
		if len(part) == 0 || len(part) > 4 || strings.ContainsFunc(part, func(r rune) bool { return r > 0x7f || !hexDigit(byte(r)) }) {
			return false
		}
		groups++
		if !more {
			return groups == 8 && !gap || groups < 8 && gap
		}
		if s = rest; strings.HasPrefix(s, ":") {
			if gap {
				return false
			}
			if gap, s = true, s[1:]; s == "" {
				return groups < 8
			}
		}
	}
}
