//! The engine and its slots: how many instances can exist at a time.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use plugin_protocol::{Bound, PATIENCE};
use sandbox::{PLUGIN_PARTS, Profile, Settings};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use wasmtime::component::Component;
use wasmtime::{Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig};

use crate::memory_budget::MemoryBudget;
use crate::ticker::Ticker;

/// If no call gets a slot for this long, something is wrong: calls are limited in time, so places do become free.
const STARVED: Duration = Duration::from_secs(60);

/// How much of its memory, tables and stack a free slot keeps, in bytes: resetting these pages is cheaper than getting
/// new ones.
const KEEP: usize = 64 << 10;
/// How many slots keep that much; the rest give everything back.
const WARM: u32 = 8;

/// The numbers of slots that a pool can have.
const SLOTS: std::ops::RangeInclusive<usize> = 2..=4096;
/// The most address space that a pool reserves, in bytes. A process of 32 bits has 3 GiB, and half is for native code, the
/// heap and threads.
const ADDRESS_SPACE: u64 = if usize::BITS == 32 { 3 << 29 } else { u64::MAX };
/// The address space of an element of a table, in bytes: on 64 bits, and half of that on 32.
const TABLE_ELEMENT: u64 = 8;
/// The largest page of a supported processor, in bytes: each stack has one below it that is never mapped.
const PAGE: u64 = 64 << 10;
/// How many memories an instance in one place may have. On 64 bits address space costs nothing, so every instance takes
/// one place. On 32 bits it is scarce: an instance takes a place for each of its memories.
const MEMORIES_PER_PLACE: u32 = if usize::BITS == 32 {
    1
} else {
    PLUGIN_PARTS.memories
};

/// The engine of all plugins.
pub(crate) struct Pool {
    pub(crate) engine: Engine,
    pub(crate) ticker: Ticker,
    /// The memory that all plugins may use.
    pub(crate) memory: Arc<MemoryBudget>,
    free: Arc<Semaphore>,
    slots: usize,
    /// Since when every request for a slot has been refused.
    starved: Mutex<Option<Instant>>,
}

/// The places of one instance in the pool. Must be dropped after the store that uses them.
pub(crate) struct Slot(#[expect(dead_code, reason = "held for its drop")] OwnedSemaphorePermit);

/// Returns how many places an instance of the component takes.
pub(crate) fn places(component: &Component) -> u32 {
    let parts = component.resources_required();
    let memories = parts.map_or(1, |parts| parts.num_memories.max(1));
    memories.div_ceil(MEMORIES_PER_PLACE)
}

/// Returns the address space that a pool with this many slots of one memory each reserves, in bytes: for each slot the
/// memory with its guard, the tables, and a stack, and one more guard before the first memory.
fn address_space(slots: usize) -> u64 {
    let Settings { memory, stack, .. } = Settings::for_profile(Profile::Plugin);
    let (memory, guard) = memory.map_or((0, 0), |memory| (memory.reservation, memory.guard));
    let tables =
        u64::from(PLUGIN_PARTS.tables) * PLUGIN_PARTS.table_elements as u64 * TABLE_ELEMENT;
    let slot = memory + guard + tables + stack as u64 + PAGE;
    guard + slots as u64 * slot
}

/// Returns the number of slots next to `slots` that a pool can have within this much address space, in bytes.
fn fitting_slots(slots: usize, most: u64) -> usize {
    let slots = slots.clamp(*SLOTS.start(), *SLOTS.end());
    let mut fewer = (*SLOTS.start()..=slots).rev();
    fewer
        .find(|slots| address_space(*slots) <= most)
        .unwrap_or(*SLOTS.start())
}

impl Pool {
    /// Creates a pool with this many slots, or as many as the address space has room for, and this much memory for all
    /// plugins, in bytes.
    pub(crate) fn new(slots: usize, memory: usize) -> wasmtime::Result<Pool> {
        let slots = fitting_slots(slots, ADDRESS_SPACE);
        let count = u32::try_from(slots).unwrap_or(u32::MAX);
        let mut pooling = PoolingAllocationConfig::default();
        pooling
            .total_component_instances(count)
            .total_stacks(count)
            .total_core_instances(count.saturating_mul(PLUGIN_PARTS.core_instances))
            .total_memories(count.saturating_mul(MEMORIES_PER_PLACE))
            .total_tables(count.saturating_mul(PLUGIN_PARTS.tables))
            .max_core_instances_per_component(PLUGIN_PARTS.core_instances)
            .max_memories_per_component(
                PLUGIN_PARTS
                    .memories
                    .min(count.saturating_mul(MEMORIES_PER_PLACE)),
            )
            .max_tables_per_component(PLUGIN_PARTS.tables)
            .table_elements(PLUGIN_PARTS.table_elements)
            .max_memory_size(sandbox::PLUGIN_MEMORY)
            .max_unused_warm_slots(WARM)
            .linear_memory_keep_resident(KEEP)
            .table_keep_resident(KEEP)
            .async_stack_keep_resident(KEEP)
            // Linux 6.7 reports which pages were written, which halves the cost of a new instance.
            .pagemap_scan(Enabled::Auto);
        let mut config = sandbox::engine_config(Profile::Plugin);
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pooling));
        let engine = Engine::new(&config)?;
        let ticker = Ticker::start(&engine)?;
        Ok(Pool {
            engine,
            ticker,
            memory: Arc::new(MemoryBudget::new(memory)),
            free: Arc::new(Semaphore::new(slots)),
            slots,
            starved: Mutex::default(),
        })
    }

    /// Returns how many slots there are.
    pub(crate) fn slots(&self) -> usize {
        self.slots
    }

    /// Returns the reason why there is no slot.
    pub(crate) fn full(&self) -> Bound {
        Bound::Places(self.slots)
    }

    /// Returns room for an instance that takes this many places, if there is any.
    pub(crate) fn try_slot(&self, places: u32) -> Option<Slot> {
        let free = Arc::clone(&self.free);
        free.try_acquire_many_owned(places).ok().map(Slot)
    }

    /// Waits for room for an instance that takes this many places; returns `None` after [`PATIENCE`].
    pub(crate) async fn slot(&self, places: u32) -> Option<Slot> {
        let acquire = Arc::clone(&self.free).acquire_many_owned(places);
        let slot = tokio::time::timeout(PATIENCE, acquire).await;
        let slot = slot.ok().and_then(Result::ok).map(Slot);
        let mut starved = self.starved.lock();
        match slot {
            Some(_) => *starved = None,
            None => {
                starved.get_or_insert_with(Instant::now);
            }
        }
        slot
    }

    /// Returns what prevents plugins from being called.
    pub(crate) fn problems(&self) -> Vec<String> {
        let starved = *self.starved.lock();
        // A slot that is free now may have been free for long: it was not requested.
        let starved = starved.filter(|_| self.free.available_permits() == 0);
        let starved = starved
            .map(|since| since.elapsed())
            .filter(|since| *since > STARVED);
        let starved = starved.map(|since| {
            let seconds = since.as_secs();
            format!("no plugin could be called for {seconds} s: all places are taken")
        });
        self.ticker.problem().into_iter().chain(starved).collect()
    }
}

#[cfg(test)]
mod tests {
    use plugin_protocol::DEFAULT_SLOTS;

    use super::*;

    #[test]
    fn the_places_of_plugins_fit_into_the_address_space_of_a_32_bit_board() {
        let of_32_bits = 3 << 29;
        let reserved = address_space(DEFAULT_SLOTS);
        assert_eq!(reserved >> 20, 1083, "docs/security.md has this number");
        assert!(reserved <= of_32_bits && of_32_bits < u64::from(u32::MAX));
        assert_eq!(fitting_slots(DEFAULT_SLOTS, of_32_bits), DEFAULT_SLOTS);
        // A pool of more slots has fewer there, but never fewer than two.
        let fitting = fitting_slots(4096, of_32_bits);
        assert!((DEFAULT_SLOTS..64).contains(&fitting), "{fitting}");
        assert!(address_space(fitting + 1) > of_32_bits);
        for (slots, most, expected) in [(0, u64::MAX, 2), (9999, u64::MAX, 4096), (64, 0, 2)] {
            assert_eq!(fitting_slots(slots, most), expected, "{slots}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn slots_that_stay_in_use_are_a_problem_and_a_free_one_ends_it() {
        let pool = Pool::new(2, 0).unwrap();
        let (first, _second) = (pool.slot(1).await.unwrap(), pool.slot(1).await.unwrap());
        assert!(pool.slot(1).await.is_none());
        assert!(pool.problems().is_empty(), "calls take a while");
        tokio::time::advance(STARVED).await;
        assert!(pool.slot(1).await.is_none());
        let problems = pool.problems();
        assert!(problems[0].contains("all places are taken"), "{problems:?}");
        drop(first);
        assert!(pool.problems().is_empty());
    }
}
