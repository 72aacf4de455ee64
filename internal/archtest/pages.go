package archtest

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The pages that have rules of their own, and the most words that two of them may have.
const (
	housePage     = "ARCHITECTURE.md"
	docsDir       = "docs"
	docsIndex     = docsDir + "/README.md"
	decisionsDir  = docsDir + "/decisions"
	internalsDir  = docsDir + "/internals"
	maxReadme     = 750
	maxHousePage  = 1600
	decisionTable = decisionsDir + "/README.md"
)

// checkLongPages finds the two pages that are read first and have grown too long for that.
func checkLongPages(t *Tree, _ *Book) (out []Finding) {
	for page, limit := range map[string]int{"README.md": maxReadme, housePage: maxHousePage} {
		if n := len(strings.Fields(string(t.Texts[page]))); n > limit {
			out = append(out, Finding{Key: page, Pos: page + ":1", Text: fmt.Sprintf("%d words, over %d: move a part to a page below %s/ and link it", n, limit, docsDir)})
		}
	}
	return out
}

// pages returns the names of all pages, sorted.
func pages(t *Tree) (out []string) {
	for p := range t.Texts {
		if path.Ext(p) == ".md" {
			out = append(out, p)
		}
	}
	slices.Sort(out)
	return out
}

// link is a relative link of a page.
type link struct {
	to     string // from the root
	anchor string
	line   int
}

var (
	linkTarget = regexp.MustCompile(`\]\(([^)\s]+)(?:\s+"[^"]*")?\)|(?:src|href)="([^"]+)"`)
	codeSpan   = regexp.MustCompile("`[^`]*`")
	scheme     = regexp.MustCompile(`^[a-z]+:`)
)

// links returns the relative links of a page, those in blocks and spans of code left out.
func links(t *Tree, page string) (out []link) {
	eachLine(t, page, func(n int, line string, code bool) {
		if code {
			return
		}
		for _, m := range linkTarget.FindAllStringSubmatch(codeSpan.ReplaceAllString(line, ""), -1) {
			to, anchor, _ := strings.Cut(m[1]+m[2], "#")
			if scheme.MatchString(to) {
				continue
			}
			if to = path.Join(path.Dir(page), to); to == path.Dir(page) && !strings.HasSuffix(m[1]+m[2], "/") {
				to = page
			}
			out = append(out, link{to, anchor, n})
		}
	})
	return out
}

// eachLine visits the lines of a page; code says that one stands in a block of code.
func eachLine(t *Tree, page string, visit func(n int, line string, code bool)) {
	code := false
	for i, line := range strings.Split(string(t.Texts[page]), "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			code = !code
			continue
		}
		visit(i+1, line, code)
	}
}

// checkLinks finds relative links that lead nowhere, and anchors that no heading has.
func checkLinks(t *Tree, _ *Book) (out []Finding) {
	for _, page := range pages(t) {
		for _, l := range links(t, page) {
			text := ""
			switch {
			case !t.Paths[l.to]:
				text = fmt.Sprintf("the link to %s is broken: no such file", l.to)
			case l.anchor != "" && path.Ext(l.to) == ".md" && !slices.Contains(anchors(t, l.to), l.anchor):
				text = fmt.Sprintf("the link to %s#%s is broken: no such heading", l.to, l.anchor)
			default:
				continue
			}
			out = append(out, Finding{Key: page, Pos: fmt.Sprintf("%s:%d", page, l.line), Text: text})
		}
	}
	return out
}

var noAnchor = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)

// anchors returns what the headings of a page are called in links.
func anchors(t *Tree, page string) (out []string) {
	eachLine(t, page, func(_ int, line string, code bool) {
		if title := strings.TrimLeft(line, "#"); title != line && !code {
			out = append(out, strings.ReplaceAll(noAnchor.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), ""), " ", "-"))
		}
	})
	return out
}

// checkIndex finds pages below docs that its index does not link, neither itself nor through the index of their directory.
func checkIndex(t *Tree, _ *Book) (out []Finding) {
	listed := func(index, page string) bool {
		return slices.ContainsFunc(links(t, index), func(l link) bool { return l.to == page })
	}
	for _, page := range pages(t) {
		if !strings.HasPrefix(page, docsDir+"/") || page == docsIndex || listed(docsIndex, page) {
			continue
		}
		if near := path.Dir(page) + "/README.md"; near != page && listed(docsIndex, near) && listed(near, page) {
			continue
		}
		out = append(out, Finding{Key: page, Pos: page + ":1", Text: fmt.Sprintf("%s does not link this page: add a line", docsIndex)})
	}
	return out
}

var decisionName = regexp.MustCompile(`^(\d{3})-[a-z0-9-]+\.md$`)

// checkDecisions finds decisions whose file, heading and line in the index disagree, and numbers that two have.
func checkDecisions(t *Tree, _ *Book) (out []Finding) {
	taken := map[int]string{}
	for _, page := range pages(t) {
		if path.Dir(page) != decisionsDir || page == decisionTable {
			continue
		}
		found := func(format string, args ...any) {
			out = append(out, Finding{Key: page, Pos: page + ":1", Text: fmt.Sprintf(format, args...)})
		}
		m := decisionName.FindStringSubmatch(path.Base(page))
		if m == nil {
			found("a decision's file is called NNN-title.md")
			continue
		}
		n, _ := strconv.Atoi(m[1]) // three digits
		if first := taken[n]; first != "" {
			found("%s has this number: take the next one", first)
		}
		taken[n] = page
		head, _, _ := strings.Cut(string(t.Texts[page]), "\n")
		title, ok := strings.CutPrefix(head, fmt.Sprintf("# %d. ", n))
		if !ok {
			found("its first line does not begin \"# %d. \"", n)
		} else if line := fmt.Sprintf("| [%s](%s) | %s |", m[1], path.Base(page), title); !strings.Contains(string(t.Texts[decisionTable]), line+"\n") {
			found("%s lacks its line: %s", decisionTable, line)
		}
	}
	return out
}
