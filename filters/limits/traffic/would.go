package traffic

import "strings"

// A request that passed, but would have been refused if its route did not have that in the
// shadow, has a reason that says so. It stands where the reasons of refusals stand, so
// that the other requests pay nothing for it.
const would = "would:"

// Would is the reason of a request that passed and would have been refused with code.
func Would(code string) string { return would + code }

// AndThen is the reason of a request which failed with code after it had passed with
// reason, which is "" or of Would.
func AndThen(reason, code string) string {
	if reason == "" {
		return code
	}
	return reason + " " + code
}

// cutWould parts a reason into the code with which a request would have been refused and
// the one with which it failed; either may be "".
func cutWould(reason string) (shadowed, failed string) {
	rest, ok := strings.CutPrefix(reason, would)
	if !ok {
		return "", reason
	}
	shadowed, failed, _ = strings.Cut(rest, " ")
	return shadowed, failed
}
