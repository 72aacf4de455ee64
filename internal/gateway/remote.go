package gateway

import "bytes"

// isSelf reports whether an item of a conversation is not a reference to one that the vendor keeps, whose type may be left out: it has one type, or is a message.
func (r weigher) isSelf(at field) bool {
	if r.body[at.from] != '{' {
		return true
	}
	types, roles, odd, said := 0, 0, false, false
	for name, v := range members(r.body, at) {
		switch name {
		case "type":
			types++
		case "role":
			roles, odd = roles+1, odd || r.body[v.from] != '"'
		case "content":
			said = true
		}
	}
	return types == 1 && len(kinds(r.body, at)) == 1 || types <= 1 && roles == 1 && !odd && said
}

// holds reports whether all of a picture is in the request.
func (r weigher) holds(picture field) bool {
	held, all := false, true
	add := func(in bool) { held, all = held || in, all && in }
	for name, v := range members(r.body, picture) {
		switch name {
		case "image_url":
			if r.body[v.from] != '{' {
				add(r.isData(v))
			}
			for name, url := range members(r.body, v) {
				if name == "url" {
					add(r.isData(url))
				}
			}
		case "source":
			is := kinds(r.body, v)
			add(len(is) == 1 && is[0] == "base64")
		case "file_id":
			all = all && string(v.of(r.body)) == "null"
		}
	}
	return held && all
}

func (r weigher) isData(url field) bool { return bytes.HasPrefix(url.of(r.body), []byte(`"data:`)) }
