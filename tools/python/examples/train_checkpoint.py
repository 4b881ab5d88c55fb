#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""train_checkpoint.py MODEL TEXT [--steps N]: a small trained model for docs/checkpoint.md (needs torch, transformers).

Trains a GPT-2 of 3 layers of 8 heads, d = 64, on the characters of the pages of docs/, every third page left out, and
saves it as the folder MODEL. TEXT is an NPZ file of tokens that it was not trained on, with the page of each sequence:
`ids` and `document` to measure heads on, `other_ids` and `other_document` to find what their removal costs.
"""

import argparse
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import GPT2Config, GPT2LMHeadModel

TREE = Path(__file__).resolve().parents[3]
LENGTH, BATCH, WIDTH, LAYERS, HEADS = 128, 16, 64, 3, 8


def pages(paths: Iterable[Path] | None = None) -> tuple[list[Any], list[Any], int]:
    """Texts to train on and others, as numbers of characters, and how many characters there are; by default of docs/."""
    texts = [path.read_text() for path in sorted(paths or TREE.glob("docs/**/*.md"))]
    texts = [text for text in texts if len(text) > 4 * LENGTH]
    characters = sorted(set("".join(texts)))
    number = {c: i for i, c in enumerate(characters)}
    coded = [torch.tensor([number[c] for c in text]) for text in texts]
    return [p for i, p in enumerate(coded) if i % 3], coded[::3], len(characters)


def trained(train: list[Any], size: int, steps: int) -> Any:
    torch.manual_seed(0)
    torch.set_num_threads(1)  # matrices this small gain nothing from more
    config = GPT2Config(
        vocab_size=size, n_positions=LENGTH, n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS,
        resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    model = GPT2LMHeadModel(config)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, steps)
    stream = torch.cat(train)
    for _ in range(steps):
        at = torch.randint(0, len(stream) - LENGTH, (BATCH,))
        ids = torch.stack([stream[i : i + LENGTH] for i in at])
        loss = model(input_ids=ids, labels=ids).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1)
        optimizer.step()
        schedule.step()
    return model.eval()


def sequences(some: list[Any]) -> tuple[Any, Any]:
    """Three sequences of each page, with the numbers of the pages."""
    ids, document = [], []
    for i, page in enumerate(some):
        for k in range(3):
            start = k * (len(page) - LENGTH) // 3
            ids.append(page[start : start + LENGTH])
            document.append(i)
    return torch.stack(ids), np.array(document)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("text")
    parser.add_argument("--steps", type=int, default=600)
    arguments = parser.parse_args()
    began = time.monotonic()
    train, held_out, size = pages()
    model = trained(train, size, arguments.steps)
    model.save_pretrained(arguments.model)
    half = len(held_out) // 2
    (ids, document), (other, other_document) = sequences(held_out[:half]), sequences(held_out[half:])
    np.savez(arguments.text, ids=ids, document=document, other_ids=other, other_document=other_document)
    with torch.no_grad():
        loss = float(model(input_ids=other, labels=other).loss)
    print(f"{len(train)} pages, {arguments.steps} steps, {time.monotonic() - began:.0f} s; loss {loss:.2f} nats a character")


if __name__ == "__main__":
    main()
