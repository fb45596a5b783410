/* tree.c - see tree.h. Numbers fit an int: v + 2^k is only asked for k with
 * v + 2^k < size, told by comparing 2^k with size - v. */
#include "common/tree.h"

/* v of a member, and the member of a v. */
static int number_of(coh_tree self, int member)
{
    return member >= self.root ? member - self.root
                               : member - self.root + self.size;
}

static int member_of(coh_tree self, int v)
{
    return v < self.size - self.root ? v + self.root
                                     : v - (self.size - self.root);
}

int coh_tree_parent(coh_tree self, int member)
{
    const int v = number_of(self, member);

    return v == 0 ? -1 : member_of(self, v & (v - 1));
}

int coh_tree_children(coh_tree self, int member)
{
    const int v = number_of(self, member);
    int k = 0;

    while (k < 31 && (v >> k & 1) == 0 && 1 << k < self.size - v)
        k++;
    return k;
}

int coh_tree_child(coh_tree self, int member, int k)
{
    return member_of(self, number_of(self, member) + (1 << k));
}

int coh_tree_depth(int size)
{
    return coh_tree_children((coh_tree){ size, 0 }, 0);
}
