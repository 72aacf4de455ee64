package storage

import "rnix/types"

// Hold keeps a history where it is until release is called, which may be called again. Others may hold it too. CONFLICT: it is
// just being archived, deleted or put back. NOT_FOUND: it is archived or deleted, and the error says so.
func (d *Service) Hold(id types.UUID) (release func(), err error) {
	release, err = d.Collector.Share(id, "rnix resume")
	return d.unlessGone(id, release, err)
}

// Reserve keeps all others from a history until release is called: nothing resumes or copies it, nor takes it away. Those are refused as this
// is while one of them is at it (CONFLICT), with the name of the one that is: who.
func (d *Service) Reserve(id types.UUID, who string) (release func(), err error) {
	release, err = d.Collector.Hold(id, who)
	return d.unlessGone(id, release, err)
}

// unlessGone lets a hold go that was taken on a history which is archived or deleted.
func (d *Service) unlessGone(id types.UUID, release func(), err error) (func(), error) {
	if err != nil {
		return nil, err
	}
	if err := d.Collector.Explain(id); err != nil {
		release()
		return nil, err
	}
	return release, nil
}
