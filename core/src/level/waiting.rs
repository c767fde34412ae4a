//! The tickets that wait in a queue: a doubly linked list through the slab, oldest first.
//!
//! Any ticket can leave at once, also from the middle, so a cancelled request gives its place back. Links are changed
//! only by the steps of a level, as written words.

use super::operation::Kind;
use super::transaction::{Stale, Transaction};
use crate::sync::Ordering::{Acquire, Release};
use crate::ticket::{Link, NO_LINK};

impl Transaction<'_> {
    /// Appends this thread's ticket, which nobody else has seen yet.
    pub(super) fn enqueue(&mut self, slot: u32, index: u32, work: u64, arrival_r: u64) -> Result<(), Stale> {
        let q = *self.queue(slot)?;
        let ticket = self.ticket(index)?;
        let tail = if q.waiting > 0 { q.tail } else { NO_LINK };
        ticket.next.store(Link(ticket.next.load(Acquire)).to(NO_LINK).0, Release);
        ticket.prev.store(Link(ticket.prev.load(Acquire)).to(tail).0, Release);
        ticket.arrival_r.store(arrival_r, Release);
        ticket.place.store((slot as u64) << 32 | q.removals as u64, Release);
        if tail != NO_LINK {
            self.link(Kind::Next, tail, index)?;
        }
        let q = self.queue(slot)?;
        if q.waiting == 0 {
            (q.head, q.head_work, q.head_arrival_r) = (index, work, arrival_r);
            q.work = 0;
        }
        q.tail = index;
        q.waiting += 1;
        q.work = q.work.wrapping_add(work);
        Ok(())
    }

    /// Takes the oldest ticket out.
    pub(super) fn dequeue(&mut self, slot: u32) -> Result<(), Stale> {
        let head = self.peek(slot)?.head;
        let next = Link(self.read(Kind::Next, head)?).index();
        let work = self.ticket(head)?.work.load(Acquire);
        self.leave(slot, work)?;
        self.set_head(slot, next)
    }

    /// Takes any ticket out.
    pub(super) fn unlink(&mut self, slot: u32, index: u32) -> Result<(), Stale> {
        let q = self.peek(slot)?;
        if q.waiting == 0 {
            return Err(Stale);
        }
        if q.head == index {
            return self.dequeue(slot);
        }
        let prev = Link(self.read(Kind::Prev, index)?).index();
        let next = Link(self.read(Kind::Next, index)?).index();
        if prev == NO_LINK {
            return Err(Stale);
        }
        self.link(Kind::Next, prev, next)?;
        if next != NO_LINK {
            self.link(Kind::Prev, next, prev)?;
        }
        let work = self.ticket(index)?.work.load(Acquire);
        self.leave(slot, work)?;
        if q.tail == index {
            self.queue(slot)?.tail = prev;
        }
        Ok(())
    }

    fn leave(&mut self, slot: u32, work: u64) -> Result<(), Stale> {
        let q = self.queue(slot)?;
        q.waiting = q.waiting.checked_sub(1).ok_or(Stale)?;
        q.work = q.work.wrapping_sub(work);
        Ok(())
    }

    fn set_head(&mut self, slot: u32, head: u32) -> Result<(), Stale> {
        if self.peek(slot)?.waiting == 0 {
            return Ok(());
        }
        let ticket = self.ticket(head)?;
        let (work, arrival_r) = (ticket.work.load(Acquire), ticket.arrival_r.load(Acquire));
        let q = self.queue(slot)?;
        (q.head, q.head_work, q.head_arrival_r) = (head, work, arrival_r);
        Ok(())
    }

    fn link(&mut self, kind: Kind, from: u32, to: u32) -> Result<(), Stale> {
        let old = self.read(kind, from)?;
        self.write(kind, from, old, Link(old).to(to).0);
        Ok(())
    }
}
